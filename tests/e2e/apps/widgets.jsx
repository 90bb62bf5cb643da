// Widgets that take a value only from what a person does; `app()` is what the app has taken.
import { parseDate } from "@internationalized/date";
import React from "react";
import * as Aria from "react-aria-components";
import { createRoot } from "react-dom/client";
import ReactSelect from "react-select";

const regions = ["North", "East", "South", "West"];
const tags = ["urgent", "vip", "later"].map((value) => ({ value, label: value }));
const state = { region: "North", tags: [], area: "North", level: 25, volume: 25, zoom: 25, date: "2026-01-31", city: "", size: "Small", colours: ["red"], town: "", fixed: "x" };
const set = (part) => Object.assign(state, part);
globalThis.app = () => structuredClone(state);

// A select as BaseWeb and Streamlit have it: the input only filters the list, and an option must be chosen.
const Area = () => {
  const [value, setValue] = React.useState(state.area);
  const [filter, setFilter] = React.useState("");
  const [open, setOpen] = React.useState(false);
  const shown = regions.filter((name) => name.toLowerCase().includes(filter.toLowerCase()));
  const choose = (name) => {
    setValue(name);
    setFilter("");
    setOpen(false);
    setTimeout(() => set({ area: name }), 30);
  };
  return (
    <div data-baseweb="select">
      <label htmlFor="area">Area</label>
      <div>
        <div>
          {!filter && <div>{value}</div>}
          <div>
            <input
              id="area"
              role="combobox"
              aria-haspopup="listbox"
              aria-expanded={open}
              aria-autocomplete="list"
              value={filter}
              onClick={() => setOpen(true)}
              onBlur={() => setFilter("")}
              onChange={(event) => {
                setFilter(event.target.value);
                setOpen(true);
              }}
            />
          </div>
        </div>
      </div>
      {open && (
        <ul role="listbox" aria-label="Areas">
          {shown.map((name) => (
            <li key={name} role="option" aria-selected={name === value} onMouseDown={(event) => event.preventDefault()} onClick={() => choose(name)}>
              {name}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
};

const Level = () => {
  const [value, setValue] = React.useState(state.level);
  const move = (by) => {
    const next = Math.min(100, Math.max(0, value + by));
    setValue(next);
    set({ level: next });
  };
  const keys = { ArrowRight: 5, ArrowUp: 5, ArrowLeft: -5, ArrowDown: -5 };
  return (
    <div
      role="slider"
      tabIndex={0}
      aria-label="Level"
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={value}
      style={{ width: 200, height: 20, background: "silver" }}
      onKeyDown={(event) => keys[event.key] && move(keys[event.key])}
    />
  );
};

// The app learns of the value when the key or the mouse button is released.
const Zoom = () => {
  const [value, setValue] = React.useState(state.zoom);
  const commit = () => set({ zoom: value });
  return (
    <label>
      Zoom
      <input type="range" min={0} max={100} value={value} onChange={(event) => setValue(Number(event.target.value))} onKeyUp={commit} onPointerUp={commit} />
    </label>
  );
};

const Colours = () => {
  const [value, setValue] = React.useState(state.colours);
  const change = (event) => {
    const chosen = [...event.target.selectedOptions].map((option) => option.value);
    setValue(chosen);
    set({ colours: chosen });
  };
  return (
    <label>
      Colours
      <select multiple value={value} onChange={change}>
        {["red", "green", "blue"].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
};

const Size = () => (
  <Aria.Select defaultSelectedKey="Small" onSelectionChange={(size) => set({ size })}>
    <Aria.Label>Size</Aria.Label>
    <Aria.Button>
      <Aria.SelectValue />
    </Aria.Button>
    <Aria.Popover>
      <Aria.ListBox>
        {["Small", "Medium", "Large"].map((name) => (
          <Aria.ListBoxItem key={name} id={name}>
            {name}
          </Aria.ListBoxItem>
        ))}
      </Aria.ListBox>
    </Aria.Popover>
  </Aria.Select>
);

const City = () => (
  <Aria.ComboBox onSelectionChange={(city) => set({ city })}>
    <Aria.Label>City</Aria.Label>
    <Aria.Input />
    <Aria.Button>▼</Aria.Button>
    <Aria.Popover>
      <Aria.ListBox>
        {["Berlin", "Bern", "Bonn"].map((name) => (
          <Aria.ListBoxItem key={name} id={name}>
            {name}
          </Aria.ListBoxItem>
        ))}
      </Aria.ListBox>
    </Aria.Popover>
  </Aria.ComboBox>
);

const Page = () => (
  <main>
    <label htmlFor="region">Region</label>
    <ReactSelect inputId="region" defaultValue={{ value: "North", label: "North" }} options={regions.map((name) => ({ value: name, label: name }))} onChange={({ value }) => set({ region: value })} />
    <label htmlFor="tags">Tags</label>
    <ReactSelect inputId="tags" isMulti options={tags} onChange={(all) => set({ tags: all.map(({ value }) => value) })} />
    <Area />
    <Level />
    <Zoom />
    <Aria.Slider defaultValue={25} onChangeEnd={(volume) => set({ volume })}>
      <Aria.Label>Volume</Aria.Label>
      <Aria.SliderTrack style={{ width: 200, height: 20 }}>
        <Aria.SliderThumb style={{ width: 10, height: 10 }} />
      </Aria.SliderTrack>
    </Aria.Slider>
    <Aria.DateField defaultValue={parseDate(state.date)} onChange={(date) => date && set({ date: date.toString() })}>
      <Aria.Label>Day of travel</Aria.Label>
      <Aria.DateInput>{(segment) => <Aria.DateSegment segment={segment} />}</Aria.DateInput>
    </Aria.DateField>
    <Size />
    <City />
    <Colours />
    <label>
      Town
      <input role="combobox" aria-autocomplete="list" aria-expanded="false" onChange={(event) => set({ town: event.target.value })} />
    </label>
    <label>
      Fixed
      <input value="x" onChange={() => {}} />
    </label>
  </main>
);
createRoot(document.querySelector("#editor")).render(<Page />);
