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

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/volume"
)

// A Suite configures TestPlugin.
type Suite struct {
	// New returns the plugin as after a restart of the agent: without state in memory, but
	// with the files in root and the mounts of earlier instances. Required.
	New func(root string) volume.Plugin

	// Spec is a volume that the plugin supports. Required.
	Spec *volume.Spec

	// Pod is the pod that uses the volume; TestPlugin sets its UID. If nil, a pod without
	// containers is used.
	Pod *v1.Pod

	// Mounter is the mounter of the plugin, in which faults are injected. Nil means that the
	// plugin does not mount, or uses another mounter.
	Mounter *Mounter

	// Outside is set if the volume is not in the directory of the pod (hostPath, image), and
	// the plugin creates nothing there.
	Outside bool

	// NoConstruct is set if ConstructSpec cannot find such a volume on the disk.
	NoConstruct bool

	// ReadOnly is set if the pod does not write to the volume.
	ReadOnly bool
}

// TestPlugin fails t if a plugin violates the contract of volume.Plugin: repeated calls of
// SetUp and TearDown, also after an interruption and a restart of the agent, must have the
// same result, and TearDown must remove everything.
func TestPlugin(t *testing.T, s Suite) {
	t.Helper()
	if s.New == nil || s.Spec == nil {
		t.Fatal("volumetest: Suite.New or Suite.Spec is nil")
	}
	for _, c := range []struct {
		name string
		run  func(*stepT)
	}{
		{"SupportsItsOwnVolumes", (*stepT).supportsOwnVolumes},
		{"SetUpIsIdempotent", (*stepT).idempotent},
		{"RestartAfterSetUp", (*stepT).restarted},
		{"RestartDuringSetUp", (*stepT).interruptedSetUp},
		{"RestartDuringTearDown", (*stepT).interruptedTearDown},
		{"MountFailures", (*stepT).mountsFail},
		{"Canceled", (*stepT).canceled},
		{"TearDownWithoutSetUp", (*stepT).tearDownNothing},
		{"ManyPods", (*stepT).manyPods},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			c.run(&stepT{T: t, s: s, root: root, p: s.New(root)})
		})
	}
}

// A stepT is one test of the suite.
type stepT struct {
	*testing.T
	s    Suite
	root string
	p    volume.Plugin
}

func (t *stepT) restart() { t.p = t.s.New(t.root) }

func (t *stepT) request(uid types.UID) volume.Request {
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

// setUp calls SetUp and checks the result.
func (t *stepT) setUp(req volume.Request) volume.SetUpResult {
	t.Helper()
	if s, ok := compose.As[volume.Stager](t.p); ok {
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
			t.Errorf("the path of the volume does not exist: %v", err)
		}
	}
	return got
}

// tearDown calls TearDown and checks that everything was removed.
func (t *stepT) tearDown(req volume.Request) {
	t.Helper()
	if err := t.p.TearDown(t.Context(), req.Place); err != nil {
		t.Fatalf("TearDown: %v", err)
	}
	if s, ok := compose.As[volume.Stager](t.p); ok {
		if shared, _ := s.SharedName(req.Spec); shared != "" {
			if err := s.Unstage(t.Context(), req.Spec); err != nil {
				t.Fatalf("Unstage: %v", err)
			}
		}
	}
	t.gone(req)
}

func (t *stepT) gone(req volume.Request) {
	t.Helper()
	if _, err := os.Lstat(req.Dir()); !os.IsNotExist(err) {
		t.Errorf("%s still exists after TearDown (%v)", req.Dir(), err)
	}
	if t.s.Mounter != nil {
		if left := t.s.Mounter.Below(t.root); len(left) > 0 {
			t.Errorf("still mounted after TearDown: %v", left)
		}
	}
}

func (t *stepT) supportsOwnVolumes() {
	if t.p.Name() == "" || t.p.Name() != t.s.New(t.root).Name() {
		t.Errorf("the name %q is empty, or changes with a restart", t.p.Name())
	}
	if !t.p.CanSupport(t.s.Spec) {
		t.Error("CanSupport returned false for Suite.Spec")
	}
	if t.p.CanSupport(&volume.Spec{}) {
		t.Error("CanSupport returned true for an empty volume")
	}
}

func (t *stepT) idempotent() {
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
			t.Errorf("SetUp returned %+v, a second one %+v", first.Volume, again.Volume)
		}
		if kept != "" {
			if _, err := os.Stat(kept); err != nil {
				t.Errorf("a second SetUp removed the files of the pod: %v", err)
			}
		}
	}
	if stats, err := t.p.Stats(t.Context(), req.Place, first.Volume); err == nil && stats.UsedBytes == nil {
		t.Error("Stats returned neither an error nor UsedBytes; it must return errors.ErrUnsupported")
	}
	t.tearDown(req)
	t.tearDown(req)
}

func (t *stepT) restarted() {
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
			t.Errorf("ConstructSpec: %v", err)
		case spec.DirName() != req.Name:
			t.Errorf("ConstructSpec returned volume %q, not %q", spec.DirName(), req.Name)
		}
	}
	t.tearDown(req)
	if spec, err := t.p.ConstructSpec(req.Place); err == nil && spec == nil {
		t.Error("ConstructSpec of a missing volume returned neither a spec nor an error")
	}
}

// interruptedSetUp removes the last files that SetUp created, more in each round: that is
// the state when an agent is killed during SetUp.
func (t *stepT) interruptedSetUp() {
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

// interruptedTearDown is interruptedSetUp followed by TearDown.
func (t *stepT) interruptedTearDown() {
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

// takeAway removes the n-th file of the volume, counted from the last one, and those
// after it. It reports whether there are so many files.
func (t *stepT) takeAway(req volume.Request, n int) bool {
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

// mountsFail makes each mount and unmount fail, one per round.
func (t *stepT) mountsFail() {
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
		if err == nil && faults <= n { // all mounts have failed once
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

// canceled cancels the context of SetUp early.
func (t *stepT) canceled() {
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

func (t *stepT) tearDownNothing() { t.tearDown(t.request("pod-1")) }

func (t *stepT) manyPods() {
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			req := t.request(types.UID(fmt.Sprintf("pod-%d", n)))
			if s, ok := compose.As[volume.Stager](t.p); ok {
				if shared, _ := s.SharedName(req.Spec); shared != "" {
					return // shared by pods; only a manager can detect the last one
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
