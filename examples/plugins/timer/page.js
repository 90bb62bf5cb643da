// Runs in the page itself. `plugin`, `ToolError`, `log` and `config` are provided.
const clock = () => document.querySelector("[data-left]");
const left = () => Number(clock().dataset.left);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

plugin({
  async isReady() {
    return clock() !== null;
  },
  tools: {
    read_timer() {
      return { left: left(), running: left() > 0 };
    },
    set_timer({ seconds }) {
      clock().dataset.left = String(seconds);
      clock().dispatchEvent(new Event("change"));
      log.info(`The timer is set to ${seconds} s.`);
      return { left: left() };
    },
    async wait_for_timer({ seconds = 60 }, { reportProgress }) {
      const total = left();
      const until = Date.now() + seconds * 1000;
      while (left() > 0) {
        if (Date.now() >= until) throw ToolError.timeout(`The timer still runs: ${left()} s are left.`);
        reportProgress({ progress: total - left(), total, message: `${left()} s left` });
        await pause(100);
      }
      return { left: 0 };
    },
  },
});
