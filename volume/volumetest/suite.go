package volumetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/volume"
)

// A Suite says what TestPlugin tests.
type Suite struct {
	// New returns the plugin as an agent that has just started makes it: what
	// an earlier one has in memory is gone, what it left in root is there, and
	// so is what it has mounted. Required.
	New func(root string) volume.Plugin

	// Spec is a volume of its kind. Required.
	Spec *volume.Spec

	// Pod that wants it; TestPlugin gives it a UID. Nil: one without
	// containers.
	Pod *v1.Pod

	// Mounter is what the plugin mounts with; faults are put into it. Nil: the
	// plugin mounts nothing, or not with one of ours.
	Mounter *Mounter

	// Outside: the volume is not the pod's own directory (hostPath, image), and
	// nothing is in the agent's.
	Outside bool

	// NoConstruct: nothing on the disk tells of such a volume.
	NoConstruct bool

	// ReadOnly: the pod does not write to it.
	ReadOnly bool
}

// TestPlugin fails t where a plugin does not keep the contract of volume.Plugin:
// set up and torn down again and again, by agents that are restarted in the
// middle, it comes out the same, and in the end nothing is left.
func TestPlugin(t *testing.T, s Suite) {
	t.Helper()
	if s.New == nil || s.Spec == nil {
		t.Fatal("volumetest: Suite.New or Suite.Spec is nil")
	}
	for _, c := range []struct {
		name string
		run  func(*trial)
	}{
		{"ItKnowsItsOwn", (*trial).supportsOwnVolumes},
		{"SetUpIsIdempotent", (*trial).idempotent},
		{"RestartAfterSetUp", (*trial).restarted},
		{"RestartInTheMiddleOfSetUp", (*trial).interruptedSetUp},
		{"RestartInTheMiddleOfTearDown", (*trial).interruptedTearDown},
		{"MountsThatFail", (*trial).mountsFail},
		{"CalledOff", (*trial).canceled},
		{"TearDownOfNothing", (*trial).tearDownNothing},
		{"ManyPods", (*trial).manyPods},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			c.run(&trial{T: t, s: s, root: root, p: s.New(root)})
		})
	}
}

// A trial is one test of the suite.
type trial struct {
	*testing.T
	s    Suite
	root string
	p    volume.Plugin
}

func (t *trial) restart() { t.p = t.s.New(t.root) }

func (t *trial) request(uid types.UID) volume.Request {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "default"}}
	if t.s.Pod != nil {
		pod = t.s.Pod.DeepCopy()
	}
	pod.UID = uid
	return volume.Request{
		Place: volume.Place{RootDir: t.root, PodUID: uid, Plugin: t.p.Name(), Name: t.s.Spec.DirName(), Block: t.s.Spec.Block},
		Pod:   pod, Spec: t.s.Spec, MountOptions: t.s.Spec.MountOptions(),
	}
}

// setUp sets the volume up, and checks what came of it.
func (t *trial) setUp(req volume.Request) volume.SetUpResult {
	t.Helper()
	if s, ok := t.p.(volume.Stager); ok {
		if shared, err := s.SharedName(req.Spec); err != nil {
			t.Fatalf("SharedName: %v", err)
		} else if shared != "" {
			if err := s.Stage(t.Context(), req); err != nil {
				t.Fatalf("Stage: %v", err)
			}
		}
	}
	got, err := t.p.SetUp(t.Context(), req)
	if err != nil {
		t.Fatalf("SetUp: %v", err)
	}
	switch {
	case got.Path != "" && got.Device != "":
		t.Errorf("the volume is both a directory, %s, and a device, %s", got.Path, got.Device)
	case t.s.Outside:
	case req.Block && got.Device != req.Dir():
		t.Errorf("the device is %q, not %q", got.Device, req.Dir())
	case !req.Block && got.Path != req.Dir() && !strings.HasPrefix(got.Path, req.Dir()+string(filepath.Separator)):
		t.Errorf("the volume is at %q, which is not in %q", got.Path, req.Dir())
	}
	if got.Path != "" {
		if _, err := os.Stat(got.Path); err != nil {
			t.Errorf("what SetUp returned is not there: %v", err)
		}
	}
	return got
}

// tearDown tears the volume down, and checks that nothing is left of it.
func (t *trial) tearDown(req volume.Request) {
	t.Helper()
	if err := t.p.TearDown(t.Context(), req.Place); err != nil {
		t.Fatalf("TearDown: %v", err)
	}
	if s, ok := t.p.(volume.Stager); ok {
		if shared, _ := s.SharedName(req.Spec); shared != "" {
			if err := s.Unstage(t.Context(), req.Spec); err != nil {
				t.Fatalf("Unstage: %v", err)
			}
		}
	}
	t.gone(req)
}

func (t *trial) gone(req volume.Request) {
	t.Helper()
	if _, err := os.Lstat(req.Dir()); !os.IsNotExist(err) {
		t.Errorf("after TearDown there is still something at %s (%v)", req.Dir(), err)
	}
	if t.s.Mounter != nil {
		if left := t.s.Mounter.Below(t.root); len(left) > 0 {
			t.Errorf("after TearDown there is still something mounted: %v", left)
		}
	}
}

func (t *trial) supportsOwnVolumes() {
	if t.p.Name() == "" || t.p.Name() != t.s.New(t.root).Name() {
		t.Errorf("the name %q is empty, or another one after a restart", t.p.Name())
	}
	if !t.p.CanSupport(t.s.Spec) {
		t.Error("it does not support a volume of its own kind")
	}
	if t.p.CanSupport(&volume.Spec{}) {
		t.Error("it supports a volume of which nothing is known")
	}
}

func (t *trial) idempotent() {
	req := t.request("pod-1")
	first := t.setUp(req)
	kept := ""
	if !t.s.ReadOnly && first.Path != "" && !t.s.Outside {
		kept = filepath.Join(first.Path, "written-by-the-pod")
		if err := os.WriteFile(kept, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, refresh := range []bool{false, true, false} {
		req.Refresh = refresh
		if again := t.setUp(req); again.Volume != first.Volume {
			t.Errorf("SetUp returned %+v, and then %+v", first.Volume, again.Volume)
		}
		if kept != "" {
			if _, err := os.Stat(kept); err != nil {
				t.Errorf("a further SetUp has taken what the pod wrote: %v", err)
			}
		}
	}
	if stats, err := t.p.Stats(t.Context(), req.Place, first.Volume); err == nil && stats.UsedBytes == nil {
		t.Error("Stats returned no error, and no UsedBytes either; what it can't know is errors.ErrUnsupported")
	}
	t.tearDown(req)
	t.tearDown(req)
}

func (t *trial) restarted() {
	req := t.request("pod-1")
	first := t.setUp(req)
	t.restart()
	if again := t.setUp(req); again.Volume != first.Volume {
		t.Errorf("SetUp returned %+v, and after a restart %+v", first.Volume, again.Volume)
	}
	t.restart()
	if !t.s.NoConstruct && !t.s.Outside {
		spec, err := t.p.ConstructSpec(req.Place)
		switch {
		case err != nil:
			t.Errorf("Construct: %v", err)
		case spec.DirName() != req.Name:
			t.Errorf("Construct tells of a volume %q, not %q", spec.DirName(), req.Name)
		}
	}
	t.tearDown(req)
	if spec, err := t.p.ConstructSpec(req.Place); err == nil && spec == nil {
		t.Error("Construct of what is not there returned neither a spec nor an error")
	}
}

// halfSetUp takes away, piece by piece, what SetUp made last: so it looks when an
// agent was killed before it had made it.
func (t *trial) interruptedSetUp() {
	for n := range 20 {
		req := t.request(types.UID(fmt.Sprintf("pod-%d", n)))
		t.setUp(req)
		if !t.takeAway(req, n) {
			t.tearDown(req)
			return
		}
		t.restart()
		got := t.setUp(req)
		if got.Path != "" {
			if _, err := os.Stat(got.Path); err != nil {
				t.Errorf("%v", err)
			}
		}
		t.tearDown(req)
	}
}

// halfTornDown does the same, and then lets TearDown have it.
func (t *trial) interruptedTearDown() {
	for n := range 20 {
		req := t.request(types.UID(fmt.Sprintf("pod-%d", n)))
		t.setUp(req)
		more := t.takeAway(req, n)
		t.restart()
		t.tearDown(req)
		if !more {
			return
		}
	}
}

// takeAway removes the n-th file of those that are the volume's, the last ones
// first, and what comes before it. It reports whether there are so many.
func (t *trial) takeAway(req volume.Request, n int) bool {
	if t.s.Outside {
		return false
	}
	var paths []string
	for _, dir := range []string{req.PluginDir(), req.Dir()} {
		_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err == nil {
				paths = append(paths, path)
			}
			return nil
		})
	}
	for i := len(paths) - 1; i >= 0 && i >= len(paths)-1-n; i-- {
		if t.s.Mounter != nil {
			for range t.s.Mounter.Below(paths[i]) {
				_ = t.s.Mounter.Unmount(paths[i])
			}
		}
		if err := os.RemoveAll(paths[i]); err != nil {
			t.Fatal(err)
		}
	}
	return n < len(paths)-1
}

// mountsFail lets each mount and unmount fail in its turn.
func (t *trial) mountsFail() {
	if t.s.Mounter == nil {
		t.Skip("the plugin mounts nothing")
	}
	faults := 0
	failAt := -1
	t.s.Mounter.Fault = func(string, string) error {
		faults++
		if faults-1 == failAt {
			return ErrFault
		}
		return nil
	}
	t.Cleanup(func() { t.s.Mounter.Fault = nil })
	for n := range 20 {
		req := t.request(types.UID(fmt.Sprintf("pod-%d", n)))
		faults, failAt = 0, n
		_, err := t.p.SetUp(t.Context(), req)
		if err == nil && faults <= n { // that many mounts it does not make
			if downErr := t.p.TearDown(t.Context(), req.Place); downErr == nil && faults <= n {
				t.gone(req)
				return
			}
		}
		failAt = -1
		t.restart()
		t.setUp(req)
		t.tearDown(req)
	}
}

// calledOff ends the context of SetUp early.
func (t *trial) canceled() {
	for n := range 10 {
		req := t.request(types.UID(fmt.Sprintf("pod-%d", n)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*50*time.Microsecond)
		_, _ = t.p.SetUp(ctx, req)
		cancel()
		t.restart()
		if n%2 == 0 {
			t.setUp(req)
		}
		t.tearDown(req)
	}
}

func (t *trial) tearDownNothing() { t.tearDown(t.request("pod-1")) }

func (t *trial) manyPods() {
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			req := t.request(types.UID(fmt.Sprintf("pod-%d", n)))
			if s, ok := t.p.(volume.Stager); ok {
				if shared, _ := s.SharedName(req.Spec); shared != "" {
					return // pods share it, and only a manager knows which is the last
				}
			}
			if _, err := t.p.SetUp(t.Context(), req); err != nil {
				t.Errorf("SetUp: %v", err)
			}
			if err := t.p.TearDown(t.Context(), req.Place); err != nil {
				t.Errorf("TearDown: %v", err)
			}
		})
	}
	wg.Wait()
	if t.s.Mounter != nil {
		if left := t.s.Mounter.Below(t.root); len(left) > 0 {
			t.Errorf("still mounted: %v", left)
		}
	}
}
