package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// A world is an agent and its runtime, whose state is also read without the agent, to
// compare it with the agent's reports.
type world struct {
	*agent
	daemon *lab.Daemon // nil for plain processes
}

// onContainerd is a world with a new containerd.
func onContainerd(t *testing.T) *world {
	t.Helper()
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	return &world{agent: newAgent(t, daemon.Endpoint), daemon: daemon}
}

// onProcesses is a world of plain processes, run by the user of the test.
func onProcesses(t *testing.T) *world {
	t.Helper()
	if os.Getenv("KUBEPARTS_PROCESSES") == "" {
		t.Skip("takes minutes; set KUBEPARTS_PROCESSES=1 to run it")
	}
	if goruntime.GOOS != "linux" {
		t.Skip("reads processes from /proc")
	}
	return &world{agent: newAgent(t, "process")}
}

// put writes the manifest of the named pod.
func (w *world) put(name, manifest string) {
	w.t.Helper()
	w.write(name+".yaml", strings.ReplaceAll(manifest, "WORLD", w.dir))
}

// take removes the manifest of the named pod.
func (w *world) take(name string) {
	w.t.Helper()
	w.remove(name + ".yaml")
}

// until waits until check finds nothing wrong.
func (w *world) until(what string, check func() error) {
	w.t.Helper()
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begun) > patience {
			w.t.Fatalf("not within %v: %s: %v", patience, what, err)
		}
	}
}

// logFile is where a container's log has to be.
func (w *world) logFile(pod v1.Pod, container string, restarts int32) string {
	return filepath.Join(w.podLogs(pod), container, fmt.Sprintf("%d.log", restarts))
}

func (w *world) podLogs(pod v1.Pod) string {
	return filepath.Join(w.logs(), pod.Namespace+"_"+pod.Name+"_"+string(pod.UID))
}

// A line is one of a container's log.
type line struct {
	at     time.Time
	stream string
	full   bool // the line ends here, and does not continue in the next entry
	text   string
}

// readLog reads a log in the CRI's format.
func (w *world) readLog(path string) []line {
	w.t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(w.t, err)
	return parseLog(w.t, data)
}

// awaitLog waits until the container has printed a line: one that runs may not have yet.
func (w *world) awaitLog(path string) (lines []line) {
	w.t.Helper()
	w.until(path+" has a line", func() error {
		if lines = w.readLog(path); len(lines) == 0 {
			return errors.New("it is empty")
		}
		return nil
	})
	return lines
}

func parseLog(t *testing.T, data []byte) []line {
	t.Helper()
	var lines []line
	for raw := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSuffix(raw, "\n"), " ", 4)
		require.Len(t, fields, 4, "%q", raw)
		at, err := time.Parse(time.RFC3339Nano, fields[0])
		require.NoError(t, err)
		require.Contains(t, []string{"F", "P"}, fields[2])
		lines = append(lines, line{at, fields[1], fields[2] == "F", fields[3]})
	}
	return lines
}

// A listing is the runtime's sandboxes and containers.
type listing struct {
	sandboxes  []sandbox
	containers []instance
}

type sandbox struct {
	ID, Name, Namespace, UID string
	Attempt                  uint32
	Ready                    bool
	Labels, Annotations      map[string]string
}

type instance struct {
	ID, Name, SandboxID string
	Attempt             uint32
	Labels, Annotations map[string]string
	running             bool
}

// String names the container in its pod.
func (i instance) String() string {
	return i.Labels["io.kubernetes.pod.namespace"] + "/" + i.Labels["io.kubernetes.pod.name"] + "/" + i.Name
}

func (i instance) uid() string { return i.Labels["io.kubernetes.pod.uid"] }

// list reads the state of the runtime directly.
func (w *world) list() (listing, error) {
	if w.daemon == nil {
		return listProcesses(filepath.Join(w.dir, "root", "process"))
	}
	raw, err := lab.List(w.t.Context(), w.daemon.Endpoint)
	var l listing
	for _, s := range raw.Sandboxes {
		l.sandboxes = append(l.sandboxes, sandbox{
			ID: s.Id, Name: s.Metadata.Name, Namespace: s.Metadata.Namespace, UID: s.Metadata.Uid, Attempt: s.Metadata.Attempt,
			Ready: s.State.String() == "SANDBOX_READY", Labels: s.Labels, Annotations: s.Annotations,
		})
	}
	for _, c := range raw.Containers {
		l.containers = append(l.containers, instance{
			ID: c.Id, Name: c.Metadata.Name, SandboxID: c.PodSandboxId, Attempt: c.Metadata.Attempt,
			Labels: c.Labels, Annotations: c.Annotations, running: c.State.String() == "CONTAINER_RUNNING",
		})
	}
	return l, err
}

// listProcesses reads the records of the process runtime directly, since only the
// agent may open its directory. Exits are read last: a container listed as running ran
// when the newest start was read.
func listProcesses(dir string) (listing, error) {
	var l listing
	err := records(filepath.Join(dir, "sandboxes"), "sandbox.json", &l.sandboxes)
	if err == nil {
		err = records(filepath.Join(dir, "containers"), "container.json", &l.containers)
	}
	for i, c := range l.containers {
		_, err := os.Stat(filepath.Join(dir, "containers", c.ID, "process.json"))
		l.containers[i].running = err == nil
	}
	for i, c := range l.containers {
		_, err := os.Stat(filepath.Join(dir, "exits", c.ID+".json"))
		l.containers[i].running = l.containers[i].running && errors.Is(err, fs.ErrNotExist)
	}
	return l, err
}

func records[T any](dir, file string, to *[]T) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name(), file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		var one T
		if err == nil {
			err = json.Unmarshal(data, &one)
		}
		if err != nil {
			return err
		}
		*to = append(*to, one)
	}
	return nil
}

// mustList is list for a runtime that must respond.
func (w *world) mustList() listing {
	w.t.Helper()
	l, err := w.list()
	require.NoError(w.t, err)
	return l
}

// of returns the part of the listing that belongs to one pod.
func (l listing) of(uid string) listing {
	var mine listing
	for _, s := range l.sandboxes {
		if s.UID == uid {
			mine.sandboxes = append(mine.sandboxes, s)
		}
	}
	for _, c := range l.containers {
		if c.uid() == uid {
			mine.containers = append(mine.containers, c)
		}
	}
	return mine
}

// doubles returns duplicates: running instances of one container in pods of one name,
// containers of one name and attempt in a sandbox, sandboxes of one attempt of a pod,
// ready sandboxes of pods of one name.
func (l listing) doubles() []string {
	var found []string
	seen := map[string]string{}
	check := func(id, format string, args ...any) {
		what := fmt.Sprintf(format, args...)
		if other, twice := seen[what]; twice {
			found = append(found, fmt.Sprintf("two of %s: %s and %s", what, other, id))
		}
		seen[what] = id
	}
	for _, c := range l.containers {
		check(c.ID, "container %s attempt %d in sandbox %s", c, c.Attempt, c.SandboxID)
		if c.running {
			check(c.ID, "running container %s", c)
		}
	}
	for _, s := range l.sandboxes {
		check(s.ID, "sandbox %s attempt %d", s.UID, s.Attempt)
		if s.Ready {
			check(s.ID, "ready sandbox %s/%s", s.Namespace, s.Name)
		}
	}
	return found
}

// bareID returns a container's ID in the runtime's format.
func bareID(id string) string {
	_, bare, _ := strings.Cut(id, "://")
	return bare
}
