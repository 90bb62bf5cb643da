// The values of the secret fields of this document and of the frames that it can read.
() => ({ values: kit.secretValues(true).slice(0, 200), frames: document.querySelector("iframe, frame, object, embed") !== null })
