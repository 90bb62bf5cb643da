/**
 * The types of what the hub sends to the panel (`config.getState` and events). Whatever comes from a page, plugin, server
 * or agent is shown as plain text.
 */

/** @typedef {"off" | "ask" | "auto"} Permission */
/** @typedef {import("../link/relay_levels.js").SiteLevel} RelaySite */
/** @typedef {"allow_once" | "allow_session" | "allow_always" | "deny"} Decision */

/** @typedef {"every_site" | "every_agent"} WiderScope */
/** @typedef {import("../link/relay_levels.js").Level} SiteLevel */
/** A rule for everyone, or for one agent. @typedef {{ pattern: string, agent: string | null, level: SiteLevel }} SiteRule */
/** An approval that always holds, and what it allows as a sentence. @typedef {{ id: string, text: string, created: number, approvedBy: string }} Grant */

/**
 * @typedef {object} ToolFacts
 * @property {string} name as agents call it
 * @property {string} [title]
 * @property {string} [description]
 * @property {Permission | null} [permission] the level the person set, if any
 * @property {Permission} [effective] the level that applies
 * @property {string} [from] where that comes from
 * @property {boolean} [readOnly]
 * @property {boolean} [changed] its definition differs from the approved one
 * @property {boolean} [enabled] whether a server's tool is used at all
 * @property {string} [tool] its name on its server
 */

/**
 * @typedef {object} SettingField
 * @property {"url" | "string" | "number" | "boolean" | "select"} type
 * @property {string} label
 * @property {string} [description]
 * @property {boolean} [required]
 * @property {string} [placeholder]
 * @property {string[]} [options]
 * @property {boolean} [secret]
 */

/**
 * @typedef {object} PluginFacts
 * @property {string} name
 * @property {string} displayName
 * @property {string} version
 * @property {string} [description]
 * @property {string} [iconSvg]
 * @property {string | null} [homepage]
 * @property {string} [source]
 * @property {string} [path]
 * @property {string | null} [package]
 * @property {string[]} [problems]
 * @property {Permission | null} [permission]
 * @property {Permission} [effective]
 * @property {ToolFacts[]} tools
 * @property {Record<string, SettingField>} [configSchema]
 * @property {Record<string, unknown>} [settings]
 * @property {{ tabId: number, url?: string, title?: string, ready?: boolean }[]} [tabs]
 * @property {"closed" | "unavailable" | "ready"} [tabState]
 */

/**
 * @typedef {object} SessionFacts
 * @property {string} id
 * @property {string} kind
 * @property {string} client
 * @property {string} [token]
 * @property {string} [color]
 * @property {string} [agent] its name for a person, numbered from its agent's second session on
 * @property {boolean} [gone] whether its client has disconnected
 * @property {number[]} [ownTabs] the tabs it opened
 * @property {number} openSeconds
 * @property {number} idleSeconds
 * @property {boolean} connected
 * @property {number} callsInFlight
 * @property {number | null} tabId
 * @property {{ tabId: number, heldSeconds: number, title?: string, url?: string, browserId?: string }[]} leases
 */

/** @typedef {import("../link/messages.js").FromExtension} FromExtension */
/**
 * The parameters of a request: those of the hub as src/tabhub/wire declares them.
 * @template {string} M
 * @typedef {M extends keyof FromExtension ? FromExtension[M] : Record<string, unknown>} ParamsOf
 */

/**
 * @typedef {object} Approval
 * @property {string} id
 * @property {string} tool
 * @property {string} [plugin]
 * @property {Record<string, unknown>} params
 * @property {string} client
 * @property {string} [token] the name of the client's token
 * @property {Decision[]} [choices] the possible decisions
 * @property {string} [session]
 * @property {number} [tabId]
 * @property {string} [origin]
 * @property {string} [title] of the tab
 * @property {string} [url] of the tab
 * @property {string} [reason] permission, pin, dataflow, tab or page
 * @property {string} [message] the reason as text
 * @property {string} [diff]
 * @property {string} [sentence] what the agent wants to do, with its name
 * @property {string[]} [steps] of a batch, or the fields of a form
 * @property {boolean} [harmless] whether the sentence is enough to allow it
 * @property {boolean} [pictured] whether there is a picture of the element
 * @property {string} [changed] the sentence of the question before, which was withdrawn because the page changed
 * @property {string} [sessionScope] what an approval for the session would allow
 * @property {string} [scope] what "always" would allow
 * @property {WiderScope[]} [wider] how that may be widened
 * @property {number} [expiresAt]
 * @property {boolean} [relay] of an agent over a relay: the extension itself enforces the decision
 */

/**
 * One call in the audit log.
 * @typedef {object} Entry
 * @property {string} timestamp
 * @property {string} tool
 * @property {string} [source]
 * @property {string} [plugin]
 * @property {string} [what] what it did, in words
 * @property {boolean} success
 * @property {number} durationMs
 * @property {number} [waitedMs] how long it waited for people, which `durationMs` leaves out
 * @property {string} [session]
 * @property {string} client
 * @property {string} [tokenName]
 * @property {number} [tabId]
 * @property {string} [origin]
 * @property {string} [outcome]
 * @property {{ code?: number | string, message?: string, category?: string }} [error]
 * @property {Record<string, unknown>} [arguments]
 * @property {any} [approval]
 */

/** @typedef {{ callId: string, tool: string, what?: string, source?: string, tabId?: number, session?: string, client?: string, token?: string, at: number }} Running */

/**
 * @typedef {object} ServerFacts
 * @property {string} name
 * @property {string} [url]
 * @property {string} [command]
 * @property {string[]} [headers] their names
 * @property {string[]} [env] the names of its variables
 * @property {boolean} enabled
 * @property {string} [state] off, connecting, ready, waiting (to retry), or login
 * @property {string} [loginUrl] where the person logs in
 * @property {string | null} [error]
 * @property {Permission | null} [permission]
 * @property {Permission} [effective]
 * @property {ToolFacts[]} tools
 */

/**
 * @typedef {object} HubState
 * @property {string} version
 * @property {{ since: number, by: string, reason: string, mode: string, callsWaiting: number } | null} paused
 * @property {boolean} skipPermissions
 * @property {Permission | null} permissionDefault
 * @property {any[]} browsers
 * @property {SessionFacts[]} sessions
 * @property {Approval[]} approvals
 * @property {Entry[]} activity
 * @property {PluginFacts[]} plugins
 * @property {{ path: string, error: string, package?: string }[]} failedPlugins
 * @property {{ permission?: Permission | null, effective?: Permission, families: { name: string, tools: ToolFacts[] }[] }} browserTools
 * @property {{ origin: string, permission?: Permission | null, effective?: Permission, tools: ToolFacts[] }[]} pages
 * @property {ServerFacts[]} upstream
 * @property {SiteRule[]} [siteRules] the most specific first
 * @property {Grant[]} [grants]
 * @property {{ category: string, title: string, patterns: string[] }[] | null} [suggestedSites] sensitive sites without a rule, until the person has decided
 * @property {Record<string, any>} settings
 * @property {boolean} [tokensRequired]
 * @property {string[]} [problems]
 * @property {string[]} [notices]
 * @property {{ missing: string[], model: string | null, steps: number, tokens: number }} [assistant] the configured model, and which settings are missing
 */

/** A conversation in the list. @typedef {{ id: string, title: string, started: number, changed: number, running: boolean }} Conversation */

/**
 * A tool the assistant used.
 * @typedef {object} Step
 * @property {"step"} kind
 * @property {number} id
 * @property {string} call
 * @property {string} name
 * @property {Record<string, unknown>} given
 * @property {string} problem why it could not be run, if the model wrote an invalid call
 * @property {number} at
 * @property {"running" | "done" | "failed" | "denied" | "stopped"} state
 * @property {string} result
 * @property {number | null} seconds
 */

/** @typedef {{ kind: "person", id: number, text: string }} PersonMessage */
/** @typedef {{ kind: "model", id: number, text: string, done: boolean }} ModelMessage */
/** @typedef {{ kind: "end", id: number, why: string, explanation: string, steps: number, tokens: number }} End */
/** @typedef {PersonMessage | ModelMessage | Step | End} ChatItem */

/**
 * The connection of this browser to a relay.
 * @typedef {object} RelayFacts
 * @property {string} url
 * @property {boolean} hasToken
 * @property {SiteLevel} level what agents over it may do on sites without a level of their own
 * @property {RelaySite[]} sites
 * @property {boolean} migrated whether the levels of sites were rewritten from settings of version 0.1
 * @property {boolean} instead whether the hub on this computer is not connected to
 * @property {"off" | "connecting" | "connected" | "waiting"} phase
 * @property {string | null} reason
 * @property {string} user
 * @property {number} agents
 * @property {{ id: string, what: string, site: string, place: string, at: number, expiresAt: number, once: boolean }[]} questions
 */

/**
 * What a view is given.
 * @typedef {object} App
 * @property {HubState | null} state
 * @property {import("./connection_text.js").PanelState | null} link
 * @property {RelayFacts | null} relay
 * @property {string | null} page the URL of the page next to the panel
 * @property {ReadonlyMap<string, Running>} running
 * @property {boolean} settling approvals have just moved, so that clicks on them are ignored
 * @property {Record<string, any>} ui what views store while the panel is open
 * @property {import("./chat.js").Chat} chat
 * @property {readonly Approval[]} waiting pending approvals, of the hub's agents and of agents over a relay
 * @property {<M extends string>(method: M, params?: ParamsOf<M>) => Promise<any>} ask
 * @property {<M extends string>(method: M, params?: ParamsOf<M>, success?: string, change?: (state: HubState) => void) => Promise<any>} act send a request, show the result and read the state again; undefined if it was refused. `change` is applied to the state at once, and to every state from before the hub's answer
 * @property {(changes: { url?: string, token?: string, level?: SiteLevel, sites?: RelaySite[], instead?: boolean }, success?: string) => Promise<boolean>} changeRelay the same for the relay's settings; false if it was refused
 * @property {(view: string) => void} go
 * @property {() => void} changed request a redraw
 * @property {(text: string, tone?: "good" | "bad") => void} say
 * @property {(approval: Approval, decision: Decision, reason?: string, wider?: WiderScope[]) => void} decide
 * @property {(approvals: readonly Approval[], decision: Decision) => void} decideAll
 */

/** @typedef {{ id: string, title: string, glyph: string, follows?: (app: App) => boolean, draw: (app: App) => import("./dom.js").Child }} View a view that follows stays scrolled to its end while it grows */

export {};
