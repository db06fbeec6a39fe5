package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// A kind is a kind of fault.
type kind struct {
	name string
	text string

	about       bool // it affects one pod
	least, most time.Duration

	// begin injects the fault and returns the function that ends it, or an error if there
	// is nothing to inject it into.
	begin func(w *world, s step) (end func() error, err error)
}

// nothing is the kind without a fault, for comparison.
const nothing = "nothing"

var kinds = []kind{
	{nothing, "pods are created and deleted without a fault, for comparison", false, 2 * time.Second, 4 * time.Second, none},
	{"agent-killed", "the agent is killed with SIGKILL and restarted", false, 0, 5 * time.Second, killAgent},
	{"agent-stopped", "the agent is stopped with SIGSTOP", false, 2 * time.Second, 8 * time.Second, stopAgent},
	{"state-corrupted", "the agent is killed, one of its checkpoints is truncated, overwritten with garbage, emptied or removed, and the agent is restarted", false, 0, 2 * time.Second, corrupt},
	{"containerd-killed", "containerd is killed with SIGKILL and restarted", false, 0, 5 * time.Second, killContainerd},
	{"containerd-stopped", "containerd is stopped with SIGSTOP", false, 2 * time.Second, 8 * time.Second, stopContainerd},
	{"socket-cut", "all connections between agent and containerd are closed, and new ones are refused", false, time.Second, 6 * time.Second, cutSocket},
	{"socket-held", "no data passes between agent and containerd, though both are running", false, 2 * time.Second, 8 * time.Second, holdSocket},
	{"api-stopped", "the API server is killed and restarted", false, 2 * time.Second, 10 * time.Second, stopAPI},
	{"agent-disk-full", "the file system with the agent's state and the pods' volumes is filled completely", false, 2 * time.Second, 8 * time.Second, fillAgent},
	{"containerd-disk-full", "the file system with containerd's images, layers and metadata is filled completely", false, 2 * time.Second, 8 * time.Second, fillContainerd},
	{"shim-stopped", "the shim of a pod is stopped with SIGSTOP", true, 2 * time.Second, 8 * time.Second, stopShim},
	{"shim-killed", "the shim of a pod is killed with SIGKILL", true, 0, time.Second, killShim},
	{"cgroup-removed", "the processes of a pod are moved out of its cgroups, which are removed", true, 0, time.Second, removeCgroup},
	{"container-killed", "all processes of a container are killed", true, 0, time.Second, killContainer},
	{"container-removed", "a container is removed from the runtime while it runs", true, 0, time.Second, removeContainer},
	{"sandbox-stopped", "the sandbox of a pod is stopped", true, 0, time.Second, stopSandbox},
}

func kindNamed(name string) *kind {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
	}
	return nil
}

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

func done() error { return nil }

func none(*world, step) (func() error, error) { return done, nil }

func killAgent(w *world, _ step) (func() error, error) {
	return func() error { w.agent.revive(); return nil }, w.agent.kill()
}

func stopAgent(w *world, _ step) (func() error, error) {
	pid := w.agent.pid()
	if pid == 0 {
		return nil, errors.New("the agent is not running")
	}
	return func() error { return ignoreGone(resumed(pid)) }, stopped(pid)
}

func killContainerd(w *world, _ step) (func() error, error) {
	w.checker.containerdKilled()
	w.daemon.Kill()
	return func() error { w.daemon.Start(); return nil }, nil
}

func stopContainerd(w *world, _ step) (func() error, error) {
	if !w.daemon.Running() {
		return nil, errors.New("containerd is not running")
	}
	w.daemon.Pause()
	return func() error {
		if w.daemon.Running() {
			w.daemon.Resume()
		}
		return nil
	}, nil
}

func cutSocket(w *world, _ step) (func() error, error) { return w.socket.mend, w.socket.cut() }

func holdSocket(w *world, _ step) (func() error, error) {
	w.socket.hold()
	return func() error { w.socket.release(); return nil }, nil
}

func stopAPI(w *world, _ step) (func() error, error) {
	w.control.StopAPI()
	return func() error { w.control.StartAPI(); return nil }, nil
}

func fillAgent(w *world, _ step) (func() error, error)      { return fill(w.root()) }
func fillContainerd(w *world, _ step) (func() error, error) { return fill(w.daemon.Root()) }

// fill fills a file system completely.
func fill(dir string) (func() error, error) {
	path := filepath.Join(dir, "filled-by-chaos")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 16 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	return func() error { return os.Remove(path) }, nil
}

// corrupt damages a checkpoint of an agent that is not running, as a crash of the machine
// could.
func corrupt(w *world, s step) (func() error, error) {
	if err := w.agent.kill(); err != nil {
		return nil, err
	}
	revive := func() error { w.agent.revive(); return nil }
	files, err := w.records()
	if err != nil || len(files) == 0 {
		return revive, err
	}
	rng := rand.New(rand.NewPCG(s.pick, 1))
	file := files[rng.IntN(len(files))]
	data, err := os.ReadFile(file)
	if err != nil {
		return revive, err
	}
	how, _ := filepath.Rel(w.root(), file)
	switch rng.IntN(4) {
	case 0:
		how += " is cut short"
		err = os.WriteFile(file, data[:len(data)/2], 0o600)
	case 1:
		how += " is filled with rubbish"
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		err = os.WriteFile(file, data, 0o600)
	case 2:
		how += " is emptied"
		err = os.WriteFile(file, nil, 0o600)
	case 3:
		how += " is removed"
		err = os.Remove(file)
	}
	w.note("%s", how)
	return revive, err
}

// records returns the checkpoint files of the agent, sorted, without the files of pods and
// without the key of the node.
func (w *world) records() (files []string, err error) {
	err = filepath.WalkDir(w.root(), func(path string, e fs.DirEntry, err error) error {
		switch name := filepath.Base(path); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() && (path == filepath.Join(w.root(), "pods") || name == "pki"):
			return filepath.SkipDir
		case e.Type().IsRegular() && !strings.HasSuffix(name, ".lock"):
			files = append(files, path)
		}
		return nil
	})
	slices.Sort(files)
	return files, err
}

// sandbox returns the sandbox of the affected pod.
func (w *world) sandbox(s step) (box, error) {
	pod := w.checker.podNamed(s.target)
	if pod == nil {
		return box{}, fmt.Errorf("pod %q does not exist", s.target)
	}
	seen, err := w.observe(w.quietly(w.ctx))
	if err != nil {
		return box{}, err
	}
	for _, b := range seen.boxes {
		if b.uid == string(pod.UID) && b.ready() {
			return b, nil
		}
	}
	return box{}, fmt.Errorf("pod %s has no sandbox", s.target)
}

// containers returns the running containers of the affected pod, by name.
func (w *world) containers(s step) ([]instance, error) {
	b, err := w.sandbox(s)
	if err != nil {
		return nil, err
	}
	seen, err := w.observe(w.quietly(w.ctx))
	if err != nil {
		return nil, err
	}
	running := slices.DeleteFunc(seen.instances, func(is instance) bool { return is.uid != b.uid || !is.running() })
	if len(running) == 0 {
		return nil, fmt.Errorf("pod %s has no running container", s.target)
	}
	slices.SortFunc(running, func(a, b instance) int { return cmp.Compare(a.Name, b.Name) })
	return running, nil
}

// container returns one of them, selected by the step.
func (w *world) container(s step) (instance, error) {
	running, err := w.containers(s)
	if err != nil {
		return instance{}, err
	}
	return running[s.pick%uint64(len(running))], nil
}

func (w *world) shim(s step) (int, error) {
	b, err := w.sandbox(s)
	if err != nil {
		return 0, err
	}
	pid := shims(w.daemon.Dir())[b.ID]
	if pid == 0 {
		return 0, fmt.Errorf("pod %s has no shim", s.target)
	}
	return pid, nil
}

func stopShim(w *world, s step) (func() error, error) {
	pid, err := w.shim(s)
	if err != nil {
		return nil, err
	}
	return func() error { return ignoreGone(resumed(pid)) }, stopped(pid)
}

func killShim(w *world, s step) (func() error, error) {
	pid, err := w.shim(s)
	if err != nil {
		return nil, err
	}
	if running, err := w.containers(s); err == nil {
		for _, is := range running {
			w.doomed = append(w.doomed, is.ID)
		}
	}
	return done, killed(pid)
}

func removeCgroup(w *world, s step) (func() error, error) {
	b, err := w.sandbox(s)
	if err != nil {
		return nil, err
	}
	groups := groupsNamed(w.Cgroup(), func(name string) bool { return name == "pod"+b.uid })
	if len(groups) == 0 {
		return nil, fmt.Errorf("pod %s has no cgroup", s.target)
	}
	var errs []error
	for _, g := range groups {
		errs = append(errs, g.remove())
	}
	w.healing.Go(func() { w.regroup(s, b.uid) })
	return done, errors.Join(errs...)
}

// regroup waits until the cgroup of the pod has been created again. The agent does so at the
// next sync of the pod, which may take longer than the recovery from other faults; rounds
// continue meanwhile.
func (w *world) regroup(s step, uid string) {
	w.checker.heals(uid, 1)
	defer w.checker.heals(uid, -1)
	began := time.Now()
	bound := 3 * time.Minute
	err := labenv.Until(w.ctx, "wait for the cgroup", bound, func() error {
		switch pod := w.checker.podNamed(s.target); {
		case pod == nil || pod.DeletionTimestamp != nil:
			return nil
		case len(groupsNamed(w.Cgroup(), func(name string) bool { return name == "pod"+uid })) == 0:
			return errors.New("no cgroup")
		case !ready(pod):
			return errors.New("not Ready")
		}
		return nil
	})
	if w.ctx.Err() == nil {
		w.checker.check(converges, err == nil, s.target, "after its cgroup was removed: %v", err)
		w.healed(s.fault, time.Since(began))
	}
}

func killContainer(w *world, s step) (func() error, error) {
	is, err := w.container(s)
	if err != nil {
		return nil, err
	}
	w.doomed = append(w.doomed, is.ID)
	for _, p := range processes(w.Dir) {
		if p.uid == is.uid && p.container == is.Name {
			err = errors.Join(err, ignoreGone(killed(p.pid)))
		}
	}
	return done, err
}

func removeContainer(w *world, s step) (func() error, error) {
	is, err := w.container(s)
	if err != nil {
		return nil, err
	}
	return done, w.cri.RemoveContainer(w.quietly(w.ctx), bareID(is.ID))
}

func stopSandbox(w *world, s step) (func() error, error) {
	b, err := w.sandbox(s)
	if err != nil {
		return nil, err
	}
	return done, w.cri.StopPodSandbox(w.quietly(w.ctx), b.ID)
}
