package server

import "strings"

// disabled returns the message, which is the kubelet's, if a path is disabled (rule sv-6);
// "" if it is enabled.
func (d Debugging) disabled(path string) string {
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
