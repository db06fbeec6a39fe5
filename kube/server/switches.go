package server

import "strings"

// off says why a path is not to be had, with the kubelet's words (sv-6). Empty: it is.
func (d Debugging) off(path string) string {
	if !d.Handlers && areaOf(path).debugging {
		return "Debug endpoints are disabled."
	}
	switch first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); {
	case first == "logs" && !d.SystemLogs:
		return "logs endpoint is disabled."
	case first == "debug" && firstSegment(rest) == "pprof" && !d.Profiling:
		return "profiling endpoint is disabled."
	case first == "debug" && firstSegment(rest) == "flags" && !d.Flags:
		return "flags endpoint is disabled."
	}
	return ""
}
