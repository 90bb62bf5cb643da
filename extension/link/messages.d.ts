// Generated from src/tabhub/wire by scripts/schemas. Do not edit.

/** Bring a tab to the front of its window. */
export type ActivateTab = {
  tabId: number;
  focusWindow?: boolean;
};

/** An agent that may be given a tab. */
export type ActiveAgent = {
  session: string;
  name: string;
};

/** A plugin's adapter and the tabs that have it. */
export type AdapterFacts = {
  plugin: string;
  hash: string;
  matches?: string[];
  world?: string;
  tabIds?: number[];
};

/** The adapters of all plugins. */
export type Adapters = {
  adapters?: AdapterFacts[];
};

/** The configuration of external servers: an object, or its JSON. */
export type AddServers = {
  json: string | Record<string, unknown>;
};

/** Put tabs into a group. */
export type AddToGroup = {
  groupId: number;
  tabIds: number[];
};

/** A message to the agent, in a new conversation if none is named. */
export type AgentMessage = {
  text: string;
  conversation?: string;
};

/** An element that an agent works on, in CSS pixels of its tab's viewport. */
export type AgentOutline = {
  tabId: number;
  x: number;
  y: number;
  width: number;
  height: number;
  color: string;
  long?: boolean;
};

/** A tab in which an agent works. */
export type AgentTab = {
  tabId: number;
  label: string;
  color: string;
  doing?: string;
};

/** All tabs that show which agent works in them. */
export type AgentTabs = {
  tabs: AgentTab[];
};

/** The state of all agents' work. */
export type AgentWork = {
  paused: boolean;
  working: number;
  agents?: ActiveAgent[];
};

/** Where a tab is after it was moved. */
export type Arrival = {
  tabId: number;
  url?: string;
  title?: string;
  status?: string;
  ok?: boolean;
  httpStatus?: number;
  error?: string;
};

/** Which calls to list; of a tool, source, session or client, part of the name is enough. */
export type AuditFilter = {
  limit?: number;
  before?: string;
  ok?: boolean;
  tool?: string;
  source?: string;
  session?: string;
  client?: string;
};

/** A bookmark or a folder of bookmarks. */
export type Bookmark = {
  id: string;
  title?: string;
  url?: string;
  parentId?: string;
  dateAdded?: string;
  children?: Bookmark[];
  more?: number;
};

/** Which bookmarks to list. */
export type BookmarkFolder = {
  parentId?: string;
  maxDepth?: number;
};

/** Bookmarks with their folders. */
export type BookmarkTree = {
  roots?: Bookmark[];
};

/** Bookmarks that were found. */
export type Bookmarks = {
  bookmarks?: Bookmark[];
  more?: number;
};

/** The browser and its extension. */
export type BrowserState = {
  browserId?: string;
  browserName?: string;
  browserVersion?: string;
  extensionVersion?: string;
  platform?: string;
  startedAt?: number;
  tabs?: number;
  windows?: number;
  debugger?: DebuggerState;
  lastError?: string;
};

/** Stop a request. It is still answered, with -32010. */
export type CancelRequest = {
  id: number | string;
};

/** A command of the Chrome DevTools Protocol that travels with another one. */
export type CdpCommand = {
  method: string;
  params?: Record<string, unknown>;
};

/** The debugger was detached from a tab. */
export type CdpDetached = {
  tabId: number;
  reason: string;
};

/** An event of the Chrome DevTools Protocol. */
export type CdpEvent = {
  tabId: number;
  method: string;
  params?: Record<string, unknown>;
  sessionId?: string;
};

/** What to delete of a site. */
export type ClearSiteData = {
  origin: string;
  cookies?: boolean;
  localStorage?: boolean;
  cache?: boolean;
  indexedDB?: boolean;
  serviceWorkers?: boolean;
};

/** What was deleted. */
export type Cleared = {
  origin: string;
  cleared?: string[];
};

/** Click an element or a point. */
export type Click = {
  tabId: number;
  selector?: string;
  x?: number;
  y?: number;
  button?: "left" | "middle" | "right";
  clickCount?: number;
};

/** A tab or window was closed. */
export type Closed = {
  closed: boolean;
};

/** A page of a closed window. */
export type ClosedPage = {
  url?: string;
  title?: string;
};

/** A closed tab or window that can be restored. */
export type ClosedSession = {
  sessionId: string;
  kind: "tab" | "window";
  closedAt?: string;
  url?: string;
  title?: string;
  tabCount?: number;
  tabs?: ClosedPage[];
};

/** The answer to ElicitConfirmation. */
export type ConfirmationAnswer = {
  confirmed: boolean;
  reason?: string;
};

/** An approval was decided, or is no longer needed. */
export type ConfirmationDone = {
  id: string;
  decision: string | null;
  by: string;
};

/** A call that needs approval. */
export type ConfirmationRequest = {
  id: string;
  tool: string;
  plugin: string;
  source: string;
  params: unknown;
  client: string | null;
  session: string;
  reason: string;
  message: string;
  choices: string[];
  expiresAt: number;
  agent: string;
  sentence: string;
  steps?: string[];
  harmless?: boolean;
  pictured?: boolean;
  changed?: string;
  sessionScope?: string;
  notify?: boolean;
  token?: string;
  tabId?: number;
  title?: string;
  url?: string;
  origin?: string;
  diff?: unknown;
  scope?: string;
  wider?: string[];
};

/** The decision on one request. */
export type ConfirmationResponse = {
  decision: "allow_always" | "allow_once" | "allow_session" | "deny";
  reason?: string;
  wider?: ("every_agent" | "every_site")[];
  id: string;
  by?: "notification" | "panel";
};

/** A cookie. */
export type Cookie = {
  name: string;
  value?: string;
  domain?: string;
  path?: string;
  secure?: boolean;
  httpOnly?: boolean;
  sameSite?: string;
  session?: boolean;
  hostOnly?: boolean;
  expirationDate?: number;
  partition?: string;
};

/** Cookies of a URL. */
export type Cookies = {
  cookies?: Cookie[];
  more?: number;
};

/** Add a bookmark. */
export type CreateBookmark = {
  url: string;
  title?: string;
  parentId?: string;
};

/** Put tabs into a new group. */
export type CreateGroup = {
  tabIds: number[];
  title?: string;
  color?: string;
  collapsed?: boolean;
};

/** Open a tab, in the background unless `active`. */
export type CreateTab = {
  url?: string;
  active?: boolean;
  windowId?: number;
  index?: number;
  openerTabId?: number;
  waitUntil?: "load" | "none";
  group?: GroupChoice;
};

/** Open a window. */
export type CreateWindow = {
  state?: string;
  left?: number;
  top?: number;
  width?: number;
  height?: number;
  focused?: boolean;
  url?: string;
  incognito?: boolean;
};

/** The tabs the debugger is attached to. */
export type DebuggerState = {
  attached: number[];
};

/** Delete the cookies of that name. */
export type DeleteCookies = {
  url: string;
  name: string;
};

/** How many cookies were deleted. */
export type Deleted = {
  deleted: number;
};

/** A download to stop and delete, by its id or as the newest of a URL; from the hub on this machine only. */
export type DiscardDownload = {
  downloadId?: number;
  url?: string;
};

/** Whether no file of a download is left. */
export type Discarded = {
  discarded?: boolean;
};

/** What a plugin's tool returned. */
export type DispatchResult = {
  output?: unknown;
};

/** A call of a plugin's tool. */
export type DispatchTool = {
  tabId: number;
  plugin: string;
  tool: string;
  input: Record<string, unknown>;
  dispatchId: string;
  urlPatterns?: string[];
  timeoutMs?: number;
};

/** A download. */
export type Download = {
  downloadId: number;
  url?: string;
  startUrl?: string;
  referrer?: string;
  filename?: string;
  state?: string;
  bytesReceived?: number;
  totalBytes?: number;
  mime?: string;
  startTime?: string;
  endTime?: string;
  error?: string;
  danger?: string;
  paused?: boolean;
  deleted?: boolean;
};

/** Download a URL. */
export type DownloadFile = {
  url: string;
  filename?: string;
  saveAs?: boolean;
  cancelLate?: boolean;
};

/** Downloads, newest first; `cut` if there are more. */
export type Downloads = {
  downloads?: Download[];
  cut?: boolean;
};

/** A page asks the person for confirmation while one of its tools runs. */
export type ElicitConfirmation = {
  tabId: number;
  frameId: number;
  documentId: string;
  toolName: string;
  message: string;
  callId?: string | number;
  details?: unknown;
};

/** No parameters. */
export type Empty = Record<string, never>;

/** A call of a page's tool. */
export type ExecuteTool = {
  tabId: number;
  frameId: number;
  documentId: string;
  toolName: string;
  args: Record<string, unknown>;
  extensions?: unknown;
  _meta?: Record<string, unknown>;
};

/** The first message on a connection. */
export type ExtensionHello = {
  browserId?: string;
  browserName?: string;
  browserVersion?: string;
  extensionVersion?: string;
  platform?: string;
  managed?: boolean;
};

/** A command of the Chrome DevTools Protocol. */
export type ForwardCdpCommand = {
  tabId: number;
  method: string;
  params?: Record<string, unknown>;
  sessionId?: string;
  interruptible?: boolean;
  site?: string;
  ahead?: CdpCommand[];
  follow?: CdpCommand[];
};

/** The answer to a FrameQuestion. */
export type FrameAnswer = {
  type: "confirm-result";
  confirmId: string;
  confirmed: boolean;
  reason: string;
};

/** Run a tool. */
export type FrameCall = {
  type: "execute-tool";
  requestId: string;
  toolName: string;
  args: Record<string, unknown>;
  extensions: unknown;
  _meta?: Record<string, unknown>;
};

/** Stop a call. */
export type FrameCancel = {
  type: "cancel-tool";
  requestId: string;
};

/** The progress of a call. */
export type FrameProgress = {
  type: "tool-progress";
  requestId: string;
  progress: number;
  total?: number;
  message?: string;
};

/** A tool asks the person for confirmation. */
export type FrameQuestion = {
  type: "confirm-action";
  confirmId: string;
  requestId: string;
  toolName: string;
  message: string;
  details: unknown;
};

/** This frame may not offer tools. */
export type FrameRefused = {
  type: "refused";
};

/** How a call ended. */
export type FrameResult = {
  type: "tool-result";
  requestId: string;
  success: boolean;
  payload: unknown;
};

/** A request for a FrameWake after that many milliseconds. */
export type FrameTimer = {
  type: "wake-me";
  wakeId: number;
  after: number;
};

/** The frame registers its tools, or the first of them; `declared` is how many it has. */
export type FrameTools = {
  type: "register-tools";
  tools: PageTool[];
  declared: number;
  capabilities: Record<string, unknown>;
};

/** All tools of the frame, again. */
export type FrameToolsChanged = {
  type: "tools-updated";
  tools: PageTool[];
  declared: number;
  capabilities: Record<string, unknown>;
};

/** A FrameTimer has expired. */
export type FrameWake = {
  type: "wake";
  wakeId: number;
};

/** Which cookies to list. */
export type GetCookies = {
  url: string;
  name?: string;
};

/** Which downloads to list. */
export type GetDownloads = {
  query?: string;
  state?: string;
  limit?: number;
};

/** Which lines of the extension's log to list. */
export type GetLogs = {
  level?: string;
  source?: string;
  limit?: number;
  since?: number;
};

/** A tab of this browser that the person gives to an agent, by the agent's session. */
export type GiveTab = {
  session: string;
  tabId: number;
};

/** A tab group. */
export type Group = {
  groupId: number;
  title?: string;
  color?: string;
  collapsed?: boolean;
  windowId?: number;
  tabIds?: number[];
};

/** The tab group kept for a key, such as an agent. */
export type GroupChoice = {
  key: string;
  title: string;
  color: string;
};

/** All tab groups. */
export type Groups = {
  groups?: Group[];
};

/** A tab that an agent holds. */
export type HeldTab = {
  tabId: number;
};

/** Visited pages; `cut` if there are more. */
export type History = {
  entries?: HistoryEntry[];
  cut?: boolean;
};

/** A visited page. */
export type HistoryEntry = {
  url: string;
  title?: string;
  lastVisitTime?: string;
  visitCount?: number;
  typedCount?: number;
};

/** Move the mouse over an element or a point. */
export type Hover = {
  tabId: number;
  selector?: string;
  x?: number;
  y?: number;
};

/** A plugin or package, and its version if not the newest. */
export type InstallPlugin = {
  name: string;
  version?: string;
};

/** An installed plugin by its package. */
export type InstalledPackage = {
  specifier: string;
};

/** An installed plugin. */
export type InstalledPlugin = {
  name: string;
};

/** A call has ended. */
export type InvocationEnd = {
  callId: string;
  ok: boolean;
  durationMs: number;
  error?: InvocationError;
};

/** Why a call failed. */
export type InvocationError = {
  message: string;
  category: string;
};

/** A call has begun; sent while a panel is open. */
export type InvocationStart = {
  callId: string;
  tool: string;
  source: string;
  session: string;
  client: string | null;
  token?: string;
  tabId?: number;
  what?: string;
};

/** A line of the extension's own log. */
export type LogEntry = {
  level?: string;
  source?: string;
  message?: string;
  time?: number;
};

/** A line of the extension's log. */
export type LogLine = {
  level: string;
  source: string;
  message: string;
  time: string;
};

/** The extension's log. */
export type Logs = {
  entries?: LogLine[];
  sources?: string[];
  more?: number;
};

/** How many at most. */
export type MaxResults = {
  maxResults?: number;
};

/** Load a URL in a tab. */
export type Navigate = {
  tabId: number;
  url: string;
  waitUntil?: "commit" | "load" | "none";
  timeoutMs?: number;
};

/** A window that was opened, and its tab. */
export type NewWindow = {
  window: Window;
  tab: TabInfo;
};

/** A request without parameters. */
export type NoParams = Record<string, never>;

/** No parameters, or an empty result. */
export type Nothing = Record<string, never>;

/** A notification; `allowed` if the system shows it. */
export type Notification = {
  notificationId: string;
  allowed: boolean;
};

/** A pending approval. */
export type OneApproval = {
  id: string;
};

/** A conversation with the agent. */
export type OneConversation = {
  conversation: string;
};

/** A download. */
export type OneDownload = {
  downloadId: number;
};

/** A grant to revoke. */
export type OneGrant = {
  id: string;
};

/** A page the person looks at, and the agent to explain it for. */
export type OnePage = {
  url: string;
  agent?: string;
};

/** An external server. */
export type OneServer = {
  name: string;
};

/** A session by its id. */
export type OneSession = {
  id: string;
};

/** A command on a tab. */
export type OneTab = {
  tabId: number;
};

/** A URL. */
export type OneUrl = {
  url: string;
};

/** A window. */
export type OneWindow = {
  windowId: number;
};

/** A folder to show in the file manager. */
export type OpenFolder = {
  path: string;
};

/** A page of the extension that is open. */
export type OpenPage = {
  kind: string;
  page: string;
  windowId: number;
  tabId?: number;
};

/** A document was closed or navigated away. */
export type PageDisconnected = {
  tabId: number;
  frameId: number;
  documentId: string;
};

/** What pages may do, and how many tools of a document, documents of a tab and lists per second of a tab are sent. */
export type PageSettings = {
  modelContext: boolean;
  allowedOrigins: string[];
  maxTools?: number;
  maxBytes?: number;
  maxDocuments?: number;
  maxUpdates?: number;
};

/** A tool as a page declares it. */
export type PageTool = {
  name: string;
  via: "form" | "mcpb" | "webmcp";
  title?: string;
  description?: string;
  inputSchema?: Record<string, unknown>;
  outputSchema?: Record<string, unknown>;
  annotations?: Record<string, unknown>;
  kind?: "prompt" | "resource" | "template";
};

/** What an open panel must load again. */
export type PanelChanged = {
  what?: string[];
};

/** Whether a panel is open, and so is sent what happens. */
export type PanelOpen = {
  open?: boolean;
};

/** What the extension's popup shows. */
export type PanelText = {
  headline: string;
  explanation: string;
  tabs: number;
  debugged: number;
  lastError?: string;
};

/** The extension's open pages, and what they show. */
export type Panels = {
  open?: OpenPage[];
  shows?: PanelText;
};

/** Stop the agents' calls: `wait` holds new ones, `fail` refuses them. */
export type Pause = {
  reason?: string;
  mode?: "fail" | "wait";
};

/** A picture in base64. */
export type Picture = {
  data: string;
  mimeType: string;
};

/** A plugin as browsers get it. */
export type Plugin = {
  name: string;
  displayName: string;
  version: string;
  description: string;
  urlPatterns: string[];
  excludePatterns: string[];
  homepage: string | null;
  adapterHash: string;
  tools: string[];
  adapterFile?: string;
  adapterSource?: string;
  preScriptFile?: string;
  iconSvg?: string;
  instances?: PluginInstance[];
};

/** One of several installations of a site. */
export type PluginInstance = {
  name: string;
  urlPatterns: string[];
};

/** Lines of plugins' logs. */
export type PluginLog = {
  entries: PluginLogEntry[];
};

/** A line of a plugin's log. */
export type PluginLogEntry = {
  plugin: string;
  message: string;
  level?: string;
  ts?: string | number;
  data?: unknown;
};

/** A plugin. */
export type PluginName = {
  name: string;
};

/** An HTTP request that a plugin's adapter asks the hub to make while one of its tools runs, with placeholders. */
export type PluginRequest = {
  dispatchId: string | number;
  url: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string;
};

/** Words to search plugins by. */
export type PluginSearch = {
  query: string;
};

/** Settings of a plugin. */
export type PluginSettings = {
  plugin: string;
  settings: Record<string, unknown>;
};

/** The tabs of one plugin. */
export type PluginState = {
  state: "closed" | "ready" | "unavailable";
  tabs?: PluginTab[];
};

/** The tabs of one plugin have changed. */
export type PluginStateChanged = {
  state: "closed" | "ready" | "unavailable";
  tabs?: PluginTab[];
  plugin: string;
};

/** A tab of a plugin, and whether its adapter is ready there. */
export type PluginTab = {
  tabId: number;
  ready?: boolean;
};

/** A plugin that is new or has changed. */
export type PluginUpdate = {
  plugin: Plugin;
};

/** Where in the viewport the mouse was used. */
export type Pointed = {
  x?: number;
  y?: number;
  dialog?: string;
};

/** Closed tabs and windows. */
export type RecentlyClosed = {
  closed?: ClosedSession[];
};

/** All tools of a document, and where it is. */
export type RegisterTools = {
  tabId: number;
  frameId: number;
  documentId: string;
  origin: string;
  url: string;
  tools: PageTool[];
  tabUrl?: string;
  title?: string;
  capabilities?: Record<string, unknown>;
  extensions?: unknown;
  declared?: number;
};

/** Load the page of a tab again. */
export type ReloadTab = {
  tabId: number;
  ignoreCache?: boolean;
};

/** Restore a closed tab or window. */
export type RestoreSession = {
  sessionId: string;
};

/** The tabs that were restored. */
export type Restored = {
  kind: "tab" | "window";
  tabs?: TabInfo[];
};

/** Take a picture of a tab. */
export type Screenshot = {
  tabId: number;
  format?: "jpeg" | "png" | "webp";
  fullPage?: boolean;
};

/** Find bookmarks. */
export type SearchBookmarks = {
  query?: string;
};

/** Find visited pages. */
export type SearchHistory = {
  query?: string;
  maxResults?: number;
  startTime?: number;
  endTime?: number;
};

/** A category of sensitive sites to block; null dismisses the suggestion. */
export type SensitiveSites = {
  category: string | null;
};

/** Switch an external server, or tools of it. */
export type ServerSettings = {
  name: string;
  enabled?: boolean;
  disabledTools?: string[];
};

/** Set a cookie. */
export type SetCookie = {
  url: string;
  name: string;
  value?: string;
  domain?: string;
  path?: string;
  secure?: boolean;
  httpOnly?: boolean;
  expirationDate?: number;
};

/** A setting by its key; null restores the default. */
export type Setting = {
  key: string;
  value?: unknown;
};

/** Show a notification of an agent on the desktop. */
export type ShowNotification = {
  agent: string;
  title: string;
  message?: string;
  imageUrl?: string;
  requireInteraction?: boolean;
  contextMessage?: string;
  url?: string;
};

/** What agents, or one, may do on the sites of a pattern; null removes that. */
export type SiteLevel = {
  pattern: string;
  level: "act" | "ask" | "block" | "read" | null;
  agent?: string;
};

/** Whether `ask` counts as `auto` everywhere. */
export type SkipPermissions = {
  skip: boolean;
};

/** Tabs. */
export type SomeTabs = {
  tabIds: number[];
};

/** The permission of all tools of a source; null removes it. */
export type SourcePermission = {
  plugin: string;
  permission: "ask" | "auto" | "off" | null;
};

/** The CDP events a tab sends from now on. */
export type SubscribeCdpEvents = {
  tabId: number;
  events: string[];
  children?: CdpCommand[];
};

/** All plugins; others are removed from pages. */
export type SyncFull = {
  plugins: Plugin[];
};

/** A tab as its browser describes it. */
export type TabInfo = {
  tabId: number;
  url?: string;
  title?: string;
  active?: boolean;
  windowId?: number;
  windowFocused?: boolean;
  index?: number;
  status?: string;
  pinned?: boolean;
  incognito?: boolean;
  groupId?: number;
  openerTabId?: number;
  openerOrigin?: string;
  discarded?: boolean;
  audible?: boolean;
  lastAccessed?: number;
  stopped?: boolean;
};

/** All tabs. */
export type TabList = {
  tabs: TabInfo[];
};

/** One tab has changed. */
export type TabStateChanged = {
  tabId: number;
  change: "activated" | "created" | "removed" | "replaced" | "updated";
  tab?: TabInfo;
  removedTabId?: number;
};

/** All tabs of the browser. */
export type TabSyncAll = {
  tabs: TabInfo[];
  plugins?: Record<string, PluginState>;
  debugger?: DebuggerState;
};

/** How a call of a page's tool ended: its MCP result, or the text of its error. */
export type ToolOutcome = {
  success: boolean;
  payload: unknown;
};

/** The permission of one tool; null removes it. */
export type ToolPermission = {
  plugin: string;
  tool: string;
  permission: "ask" | "auto" | "off" | null;
};

/** The progress of a page's or plugin's tool. */
export type ToolProgress = {
  dispatchId: string | number;
  progress: number;
  total?: number;
  message?: string;
};

/** Type text into an element, or the focused one. */
export type Type = {
  tabId: number;
  text: string;
  selector?: string;
  clear?: boolean;
};

/** How many characters were typed. */
export type Typed = {
  typed?: number;
  dialog?: string;
};

/** Change a group. */
export type UpdateGroup = {
  groupId: number;
  title?: string;
  color?: string;
  collapsed?: boolean;
};

/** All tools, again, of a registered document. */
export type UpdateTools = {
  tabId: number;
  frameId: number;
  documentId: string;
  tools: PageTool[];
  declared?: number;
};

/** Change a window. */
export type UpdateWindow = {
  windowId: number;
  state?: string;
  left?: number;
  top?: number;
  width?: number;
  height?: number;
  focused?: boolean;
};

/** One visit of a page. */
export type Visit = {
  visitId: string;
  visitTime?: string;
  transition?: string;
  referringVisitId?: string;
};

/** The visits of a page, newest first. */
export type Visits = {
  visits?: Visit[];
  more?: number;
};

/** A window. */
export type Window = {
  windowId: number;
  focused?: boolean;
  incognito?: boolean;
  state?: string;
  type?: string;
  left?: number;
  top?: number;
  width?: number;
  height?: number;
  activeTabId?: number;
  tabIds?: number[];
};

/** All windows. */
export type Windows = {
  windows?: Window[];
};

/** What a page's frame sends to the worker. */
export type FromFrame = FrameTools | FrameToolsChanged | FrameResult | FrameProgress | FrameQuestion | FrameTimer;

/** What the worker sends to a page's frame. */
export type ToFrame = FrameCall | FrameCancel | FrameAnswer | FrameWake | FrameRefused;

/** What the extension reports, by method. */
export interface FromExtension {
  "extension.hello": ExtensionHello;
  "tab.syncAll": TabSyncAll;
  "tab.stateChanged": TabStateChanged | PluginStateChanged;
  "debugger.changed": DebuggerState;
  "cdp.event": CdpEvent;
  "cdp.detached": CdpDetached;
  "browser/registerTools": RegisterTools;
  "browser/updateTools": UpdateTools;
  "browser/disconnected": PageDisconnected;
  "browser/elicitConfirmation": ElicitConfirmation;
  "tool.progress": ToolProgress;
  "plugin.request": PluginRequest;
  "plugin.log": PluginLog;
  log: LogEntry;
  ping: Nothing;
  pong: Nothing;
  "confirmation.response": ConfirmationResponse;
  "approvals.picture": OneApproval;
  "approvals.show": OneApproval;
  "sessions.give": GiveTab;
  "config.getState": NoParams;
  "config.setToolPermission": ToolPermission;
  "config.setPluginPermission": SourcePermission;
  "config.setSkipPermissions": SkipPermissions;
  "config.setPluginSettings": PluginSettings;
  "config.set": Setting;
  "sites.set": SiteLevel;
  "sites.suggestion": SensitiveSites;
  "grants.revoke": OneGrant;
  "sites.page": OnePage;
  "sessions.end": OneSession;
  "sessions.release": HeldTab;
  "hub.pause": Pause;
  "hub.resume": NoParams;
  "audit.list": AuditFilter;
  "panel.watch": PanelOpen;
  "plugin.search": PluginSearch;
  "plugin.install": InstallPlugin;
  "plugin.updateFromRegistry": InstalledPlugin;
  "plugin.remove": InstalledPlugin;
  "plugin.removeBySpecifier": InstalledPackage;
  "plugin.checkUpdates": NoParams;
  "folder.open": OpenFolder;
  "upstream.add": AddServers;
  "upstream.set": ServerSettings;
  "upstream.refresh": OneServer;
  "upstream.remove": OneServer;
  "agent.send": AgentMessage;
  "agent.stop": OneConversation;
  "agent.list": NoParams;
  "agent.resume": OneConversation;
  "agent.remove": OneConversation;
}

/** The hub's notifications, by method. */
export interface FromHub {
  cancel: CancelRequest;
  "sync.full": SyncFull;
  "plugin.update": PluginUpdate;
  "tool.invocationStart": InvocationStart;
  "tool.invocationEnd": InvocationEnd;
  "confirmation.request": ConfirmationRequest;
  "confirmation.done": ConfirmationDone;
  "plugins.changed": PanelChanged;
  "panel.changed": PanelChanged;
  "agents.marks": AgentTabs;
  "agents.outline": AgentOutline;
  "agents.work": AgentWork;
  "pages.settings": PageSettings;
  "extension.reload": Empty;
  ping: Empty;
  pong: Empty;
}

/** The hub's requests, by method. */
export interface Commands {
  getState: { params: Empty; result: BrowserState };
  getTabs: { params: Empty; result: TabList };
  createTab: { params: CreateTab; result: TabInfo };
  selectTab: { params: OneTab; result: TabInfo };
  activateTab: { params: ActivateTab; result: TabInfo };
  closeTab: { params: OneTab; result: Closed };
  browser_navigate: { params: Navigate; result: Arrival };
  goBack: { params: OneTab; result: Arrival };
  goForward: { params: OneTab; result: Arrival };
  reloadTab: { params: ReloadTab; result: Arrival };
  resumeTab: { params: OneTab; result: TabInfo };
  forwardCDPCommand: { params: ForwardCdpCommand; result: unknown };
  subscribeCDPEvents: { params: SubscribeCdpEvents; result: Nothing };
  click: { params: Click; result: Pointed };
  hover: { params: Hover; result: Pointed };
  type: { params: Type; result: Typed };
  screenshot: { params: Screenshot; result: Picture };
  "browser/executeTool": { params: ExecuteTool; result: ToolOutcome };
  "tool.dispatch": { params: DispatchTool; result: DispatchResult };
  "plugin.uninstall": { params: PluginName; result: Nothing };
  getGroups: { params: Empty; result: Groups };
  createGroup: { params: CreateGroup; result: Group };
  addToGroup: { params: AddToGroup; result: Group };
  removeFromGroup: { params: SomeTabs; result: Nothing };
  updateGroup: { params: UpdateGroup; result: Group };
  getWindows: { params: Empty; result: Windows };
  createWindow: { params: CreateWindow; result: NewWindow };
  updateWindow: { params: UpdateWindow; result: Window };
  closeWindow: { params: OneWindow; result: Closed };
  searchHistory: { params: SearchHistory; result: History };
  getVisits: { params: OneUrl; result: Visits };
  getRecentlyClosed: { params: MaxResults; result: RecentlyClosed };
  restoreSession: { params: RestoreSession; result: Restored };
  searchBookmarks: { params: SearchBookmarks; result: Bookmarks };
  createBookmark: { params: CreateBookmark; result: Bookmark };
  getBookmarkTree: { params: BookmarkFolder; result: BookmarkTree };
  downloadFile: { params: DownloadFile; result: Download };
  getDownloads: { params: GetDownloads; result: Downloads };
  getDownload: { params: OneDownload; result: Download };
  discardDownload: { params: DiscardDownload; result: Discarded };
  getCookies: { params: GetCookies; result: Cookies };
  setCookie: { params: SetCookie; result: Cookie };
  deleteCookies: { params: DeleteCookies; result: Deleted };
  clearSiteData: { params: ClearSiteData; result: Cleared };
  showNotification: { params: ShowNotification; result: Notification };
  getLogs: { params: GetLogs; result: Logs };
  getPanels: { params: Empty; result: Panels };
  getAdapters: { params: Empty; result: Adapters };
}
