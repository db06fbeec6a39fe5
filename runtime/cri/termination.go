package cri

import (
	"bytes"
	"io"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Limits of a termination message (rt-125, rt-126).
const (
	maxMessage    = 4096 // bytes, the last ones
	maxMessageLog = 80   // lines of log, the last ones
)

// terminationMessage returns what an exited container said at its end, after
// what the runtime says of it (rt-125 … rt-127).
func terminationMessage(s *runtimeapi.ContainerStatus) string {
	path := s.Annotations[podconfig.AnnotationMessagePath]
	if path == "" {
		return s.Message
	}
	said := ""
	for _, m := range s.Mounts {
		if m.GetContainerPath() == path {
			said = string(tail(m.GetHostPath(), maxMessage))
		}
	}
	wantsLog := s.Annotations[podconfig.AnnotationMessagePolicy] == string(v1.TerminationMessageFallbackToLogsOnError)
	if said == "" && wantsLog && s.ExitCode != 0 && s.Reason != "ContainerCannotRun" {
		said = lastLines(tail(s.LogPath, 256<<10))
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

// tail returns the last n bytes of a regular file; nothing if it can't be read.
// The path comes from the runtime, so it may be anything: a FIFO would block.
func tail(path string, n int64) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if _, err := f.Seek(max(info.Size()-n, 0), io.SeekStart); err != nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, n))
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
