package statuspage

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// Bounds of the end of a log.
const (
	maxLogLines = 20
	maxLogBytes = 16 << 10 // that are read from the end of the file
)

// log returns the last lines of a container's log, without values of the pod's spec.
func (h *Handler) log(p *page.Pod, path string) ([]string, error) {
	if h.cfg.NoLogs {
		return nil, nil
	}
	f, err := untrusted.OpenFollow(path) // some runtimes store the log in another directory
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := untrusted.Tail(f, maxLogBytes)
	if err != nil {
		return nil, err
	}
	lines := lastLines(string(data), len(data) == maxLogBytes)
	for _, s := range h.cfg.Agent.Table().States() {
		if s.UID == types.UID(p.UID) && s.Pod != nil {
			hide := hiderOf(s.Pod)
			for i := range lines {
				lines[i] = hide(lines[i])
			}
		}
	}
	return lines, nil
}

// lastLines returns the last lines of a log in the format of the CRI, "<time> <stream> <tags>
// <text>", without stream and tags. The first line is left out if it is cut.
func lastLines(log string, cut bool) []string {
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	if cut || lines[0] == "" {
		lines = lines[1:]
	}
	lines = lines[max(len(lines)-maxLogLines, 0):]
	for i, line := range lines {
		if fields := strings.SplitN(line, " ", 4); len(fields) == 4 {
			lines[i] = withoutFraction(fields[0]) + " " + fields[3]
		}
	}
	return lines
}

// withoutFraction returns a time in RFC 3339 without its fraction of a second.
func withoutFraction(at string) string {
	if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
		return t.Format(time.RFC3339)
	}
	return at
}
