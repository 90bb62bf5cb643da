// Node-RED as a person starts it, but without asking about telemetry, which would call home.
module.exports = {
  flowFile: "flows.json",
  flowFilePretty: true,
  uiHost: "127.0.0.1",
  telemetry: { enabled: false, updateNotification: false },
  logging: { console: { level: "info" } },
};
