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

// Limits of a termination message.
const (
	maxMessage = 4096 // bytes from the end of the file

	maxLogLines = 80        // lines from the end of the log
	maxLogBytes = 2048      // bytes of these, from the end
	maxLogTail  = 256 << 10 // bytes of the log that are read for these lines
)

// terminationMessage returns the runtime's message and the termination message of an
// exited container.
func terminationMessage(s *runtimeapi.ContainerStatus) string {
	text := ""
	if path := s.Annotations[podconfig.AnnotationMessagePath]; path != "" {
		path = podconfig.AbsolutePath(path)
		for _, m := range s.Mounts {
			if m.GetContainerPath() == path {
				text = string(tail(untrusted.Open, m.GetHostPath(), maxMessage))
			}
		}
	}
	fallback := s.Annotations[podconfig.AnnotationMessagePolicy] == string(v1.TerminationMessageFallbackToLogsOnError)
	if text == "" && fallback && s.ExitCode != 0 && s.Reason != "ContainerCannotRun" {
		// It may be a link: some runtimes store the log in another directory.
		text = lastLines(tail(untrusted.OpenFollow, s.LogPath, maxLogTail))
	}
	switch {
	case text == "":
		return s.Message
	case s.Message == "":
		return text
	default:
		return s.Message + ": " + text
	}
}

// tail returns the last n bytes of a regular file; nil if it cannot be read. The path is
// from the runtime and the content from the container, so neither is trusted.
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

// lastLines returns the last lines of a log in the CRI's format, "<time> <stream> <tags>
// <text>". The tag P joins a line with the next.
func lastLines(log []byte) string {
	lines := bytes.SplitAfter(log, []byte("\n"))
	if len(lines) > maxLogLines+1 {
		lines = lines[len(lines)-maxLogLines-1:] // the last one is empty
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
	return text[max(len(text)-maxLogBytes, 0):]
}
