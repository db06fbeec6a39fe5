package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A reading is the content of a log file of a talker.
type reading struct {
	lines int
	torn  int   // lines without the runtime's format
	gaps  int   // missing numbers
	err   error // a line is duplicate or in the wrong place
}

// readLog reads the log of a container that numbers its lines. Its last line may be incomplete.
func readLog(data string) (r reading) {
	next := 0
	for raw := range strings.Lines(data) {
		raw, whole := strings.CutSuffix(raw, "\n")
		fields := strings.SplitN(raw, " ", 4)
		n, err := number(fields)
		switch {
		case !whole:
		case err != nil:
			r.torn++
		case n < next:
			r.err = errors.Join(r.err, fmt.Errorf("line %d comes again after line %d", n, next-1))
		default:
			r.gaps += n - next
			next = n + 1
			r.lines++
		}
	}
	return r
}

// number returns the N of "TIME stdout F line N".
func number(fields []string) (int, error) {
	if len(fields) != 4 || fields[1] != "stdout" || fields[2] != "F" {
		return 0, errors.New("not the format of the CRI")
	}
	if _, err := time.Parse(time.RFC3339Nano, fields[0]); err != nil {
		return 0, err
	}
	n, ok := strings.CutPrefix(fields[3], "line ")
	if !ok {
		return 0, errors.New("not a line of the test")
	}
	return strconv.Atoi(n)
}

// readLogs checks logsReadable on all running containers. If containerd was killed
// meanwhile, lines are lost that it had read and not written.
func (w *world) readLogs(wanted []string) {
	for _, name := range wanted {
		pod := w.checker.podNamed(name)
		if pod == nil {
			continue
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running == nil {
				continue
			}
			data, err := os.ReadFile(w.logFile(pod, c))
			if errors.Is(err, fs.ErrNotExist) && w.checker.podNamed(name) != pod {
				continue // replaced meanwhile
			}
			w.checker.check(logsReadable, err == nil, name, "the log of %s: %v", c.Name, err)
			if err != nil || shapeNamed(pod.Labels["shape"]).name != "talker" {
				continue
			}
			r := readLog(string(data))
			excused := w.checker.lost(c.State.Running.StartedAt.Time)
			w.checker.check(logsReadable, r.err == nil, name, "%v", r.err)
			w.checker.check(logsReadable, excused || r.torn == 0 && r.gaps == 0, name, "of %d lines %d are missing and %d torn, and containerd was not killed", r.lines, r.gaps, r.torn)
			if excused && r.torn+r.gaps > 0 {
				w.checker.tolerateOnce("a containerd that is killed loses lines of logs that it had read and not written", name+c.ContainerID)
			}
		}
	}
}

func (w *world) logFile(pod *v1.Pod, c v1.ContainerStatus) string {
	return filepath.Join(w.logs(), fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID), c.Name, fmt.Sprintf("%d.log", c.RestartCount))
}
