package prober

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// The reasons of events, for which people look.
const (
	reasonUnhealthy = "Unhealthy"
	reasonWarning   = "ProbeWarning"
)

// detailMax bounds what is shown of Outcome.Detail, in bytes.
const detailMax = 1 << 10

// event returns what the outcome of a run makes for an event, if anything
// (prober-30 … prober-32).
func event(t Target, o Outcome, err error) (runtime.Event, bool) {
	e := runtime.Event{Type: v1.EventTypeWarning, Reason: reasonUnhealthy}
	switch {
	case err != nil:
		e.Message = t.Kind.String() + " probe errored and resulted in " + o.Result.String() + " state: " + err.Error()
	case o.Result == runtime.ProbeFailure:
		e.Message = t.Kind.String() + " probe failed: " + text(o)
	case o.Warning:
		e.Reason = reasonWarning
		e.Message = t.Kind.String() + " probe warning: " + text(o)
	default:
		return runtime.Event{}, false
	}
	e.Object = runtime.ContainerRef(t.Pod, t.Container.Name)
	return e, true
}

// text returns the output of o, with the start of its detail (F-08).
func text(o Outcome) string {
	detail := cut(strings.TrimSpace(o.Detail), detailMax)
	switch {
	case detail == "":
		return o.Output
	case o.Output == "":
		return detail
	default:
		return o.Output + ": " + detail
	}
}

// cut returns the first bytes of s, whole characters only.
func cut(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}
