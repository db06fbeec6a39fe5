package agent

import (
	"log/slog"

	"github.com/kubeparts/kubeparts/runtime"
)

// logEvents returns a Config.Record that logs events, so that the reason for a restart is in
// the log of an agent that does not record events.
func logEvents(logger *slog.Logger) func(runtime.Event) {
	return func(e runtime.Event) {
		name := e.Object.Name
		if e.Object.Namespace != "" {
			name = e.Object.Namespace + "/" + name
		}
		logger.Info("Event occurred", "object", name, "kind", e.Object.Kind, "type", e.Type, "reason", e.Reason, "message", e.Message)
	}
}
