package prober

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// The reasons of events.
const (
	reasonUnhealthy = "Unhealthy"
	reasonWarning   = "ProbeWarning"
)

// detailMax is the maximum number of bytes of Outcome.Detail in an event.
const detailMax = 1 << 10

// event returns the event for an outcome; ok is false if there is none.
func event(t Target, o Outcome, err error) (e runtime.Event, ok bool) {
	e = runtime.Event{Type: v1.EventTypeWarning, Reason: reasonUnhealthy}
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

// text returns the output of o, with the beginning of its detail.
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

// cut returns the first bytes of s, complete characters only.
func cut(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}
