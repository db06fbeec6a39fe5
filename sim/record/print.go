package record

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// String returns the frame as one line: the time since the start, the kind, and the most important
// fields. Control characters are escaped. The JSON form of a Frame has all fields.
func (f Frame) String() string {
	at := strconv.FormatFloat(f.At.Seconds(), 'f', 6, 64)
	return at + "s " + printable(f.describe())
}

func (f Frame) describe() string {
	switch {
	case f.Header != nil:
		h := f.Header
		return fmt.Sprintf("header: file %d of the recording of node %q that started at %s", h.File, h.Node, h.Start.UTC().Format(time.RFC3339))
	case f.Pods != nil:
		return f.Pods.describe()
	case f.Call != nil:
		return f.Call.describe()
	case f.Event != nil:
		return "event: " + string(f.Event.Message)
	case f.Probe != nil:
		p := f.Probe
		return fmt.Sprintf("probe: %s of %s in pod %s: %s", p.Kind, p.Container, p.Pod, result(p.Took, p.Error, p.Result, p.Output))
	case f.Operation != nil:
		o := f.Operation
		return fmt.Sprintf("%s: %s: %s", o.Component, join(o.Name, o.Volume, prefixed("pod ", string(o.Pod))), result(o.Took, o.Error))
	case f.Status != nil:
		s := f.Status
		return fmt.Sprintf("status: %s/%s: %s", s.Namespace, s.Name, result(s.Took, s.Error, phase(s.Status)))
	case f.Draw != nil:
		return fmt.Sprintf("draw: %s: %v", f.Draw.Name, f.Draw.Value)
	case f.Agent != nil:
		return fmt.Sprintf("agent: sources %s, probes %t, cgroups %t", strings.Join(f.Agent.Sources, " "), f.Agent.Probes, f.Agent.Cgroups)
	case f.State != nil:
		return "state: " + f.State.describe()
	case f.Pause != nil:
		return fmt.Sprintf("pause: the process did not run for %v", f.Pause.Took)
	case f.Dropped != nil:
		return fmt.Sprintf("dropped: %d frames: %s", f.Dropped.Count, f.Dropped.Reason)
	case f.End != nil && f.End.Rotated:
		return "end of this file"
	}
	return "end of the recording"
}

func (p *Pods) describe() string {
	var changed, removed []string
	for _, pod := range p.Changed {
		if pod != nil {
			changed = append(changed, pod.Namespace+"/"+pod.Name)
		}
	}
	for _, uid := range p.Removed {
		removed = append(removed, string(uid))
	}
	set := "pods of " + p.Source
	if p.Complete {
		set = "all pods of " + p.Source
	}
	return join(set+":", prefixed("changed ", strings.Join(changed, ", ")), prefixed("removed ", strings.Join(removed, ", ")))
}

func (s *State) describe() string {
	switch {
	case s.Status != nil:
		return join("status of pod", string(s.Pod), phase(s.Status))
	case s.Damaged:
		return join(s.File, "damaged")
	}
	return join(s.File, string(s.Content))
}

func (c *Call) describe() string {
	switch {
	case c.Pending:
		return fmt.Sprintf("call: %s %s: not returned after %v", c.Method, c.Request, c.Took)
	case c.Same != 0:
		return fmt.Sprintf("call: %s: %s", c.Method, result(c.Took, c.Error, "same answer as before"))
	}
	return fmt.Sprintf("call: %s %s: %s", c.Method, c.Request, result(c.Took, c.Error, string(c.Answer)))
}

// result returns the duration of an operation and its error, or else its results.
func result(took time.Duration, err *Error, results ...string) string {
	if err != nil {
		return join(took.String(), prefixed("error ", err.Code), err.Message)
	}
	return join(append([]string{took.String()}, results...)...)
}

// phase returns the phase and the readiness of a pod.
func phase(s *v1.PodStatus) string {
	if s == nil {
		return "delete"
	}
	for _, c := range s.Conditions {
		if c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
			return string(s.Phase) + ", ready"
		}
	}
	return join(string(s.Phase), s.Reason)
}

// join joins the parts that are not empty.
func join(parts ...string) string {
	var set []string
	for _, p := range parts {
		if p != "" {
			set = append(set, p)
		}
	}
	return strings.Join(set, " ")
}

// prefixed returns "" for "".
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// printable escapes what would control a terminal.
func printable(s string) string {
	q := strconv.QuoteToGraphic(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
