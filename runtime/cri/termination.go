package cri

import (
	"bytes"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Limits of a termination message (rt-125, rt-126).
const (
	maxMessage    = 4096 // bytes, the last ones
	maxMessageLog = 80   // lines of log, the last ones

	maxMessageTail = 256 << 10 // bytes of log that are searched for these lines
)

// terminationMessage returns what an exited container said at its end, after
// what the runtime says of it (rt-125 … rt-127).
func terminationMessage(s *runtimeapi.ContainerStatus) string {
	said := ""
	if path := s.Annotations[podconfig.AnnotationMessagePath]; path != "" {
		path = podconfig.AbsolutePath(path)
		for _, m := range s.Mounts {
			if m.GetContainerPath() == path {
				said = string(tail(untrusted.Open, m.GetHostPath(), maxMessage))
			}
		}
	}
	wantsLog := s.Annotations[podconfig.AnnotationMessagePolicy] == string(v1.TerminationMessageFallbackToLogsOnError)
	if said == "" && wantsLog && s.ExitCode != 0 && s.Reason != "ContainerCannotRun" {
		// A link, because some runtimes keep the log in another directory.
		said = lastLines(tail(untrusted.OpenFollow, s.LogPath, maxMessageTail))
	}
	switch {
	case said == "":
		return s.Message
	case s.Message == "":
		return said
	default:
		return s.Message + ": " + said
	}
}

// tail returns the last n bytes of a regular file, or nothing if it cannot be
// opened or read. The path comes from the runtime and the content from the
// container, so the file may be anything.
func tail(open func(string) (*os.File, error), path string, n int64) []byte {
	f, err := open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := untrusted.Tail(f, n)
	if err != nil {
		return nil
	}
	return data
}

// lastLines returns the last lines that a container wrote, from a log in the
// CRI's format: "<time> <stream> <tags> <text>", where the tag P joins a line to
// the next.
func lastLines(log []byte) string {
	lines := bytes.SplitAfter(log, []byte("\n"))
	if len(lines) > maxMessageLog+1 {
		lines = lines[len(lines)-maxMessageLog-1:] // one is the empty end
	}
	var b strings.Builder
	for _, line := range lines {
		fields := bytes.SplitN(line, []byte(" "), 4)
		if len(fields) < 4 {
			continue
		}
		text := fields[3]
		if bytes.HasPrefix(fields[2], []byte("P")) {
			text = bytes.TrimSuffix(text, []byte("\n"))
		}
		b.Write(text)
	}
	text := b.String()
	return text[max(len(text)-maxMessage, 0):]
}
