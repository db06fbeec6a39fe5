package containers_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// printed is the output of the image "prints", without the times.
var printed = []string{"stdout F line 1", "stdout F line 2", "stdout F line 3", "stdout F line 4", "stdout F line 5", "stderr F failed"}

// A logged pod runs the image "prints" once.
type logged struct {
	t   *testing.T
	cfg containers.Config
	rt  *containers.Runtime
	pod *v1.Pod
}

func runLogged(t *testing.T, backend containers.Backend) *logged {
	c := image("prints")
	c.Name, c.TerminationMessagePolicy = "main", v1.TerminationMessageFallbackToLogsOnError
	l := &logged{t: t, cfg: configOf(t, backend), pod: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "a"},
		Spec:       v1.PodSpec{Containers: []v1.Container{c}, RestartPolicy: v1.RestartPolicyNever},
	}}
	l.rt = open(t, l.cfg)
	_, err := l.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: l.pod})
	require.NoError(t, err)
	l.main()
	return l
}

// main observes the pod, as an agent does after each change, and returns the container.
func (l *logged) main() runtime.ContainerStatus {
	st, err := l.rt.PodStatus(l.t.Context(), l.pod.UID)
	require.NoError(l.t, err)
	require.Len(l.t, st.Containers, 1)
	return st.Containers[0]
}

// restart replaces the runtime, as a restart of the agent does.
func (l *logged) restart() {
	require.NoError(l.t, l.rt.Close())
	l.rt = open(l.t, l.cfg)
	l.main()
}

// entries returns the entries of the log and of files that were rotated before it.
func (l *logged) entries() (entries []string) {
	path, err := l.rt.LogPath(l.t.Context(), l.main().ID)
	require.NoError(l.t, err)
	files, err := filepath.Glob(path + "*")
	require.NoError(l.t, err)
	for _, file := range append(files[1:], files[0]) {
		text, err := os.ReadFile(file)
		require.NoError(l.t, err)
		for line := range strings.Lines(string(text)) {
			_, entry, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			entries = append(entries, entry)
		}
	}
	return entries
}

func TestTheOutputOfABackendIsTheLog(t *testing.T) {
	for name, backend := range map[string]func() containers.Backend{
		"fake": func() containers.Backend { return newFake(nil) },
		"fails once in the middle": func() containers.Backend {
			below, failed := newFake(nil), false
			return failing{below, func() bool { first := !failed; failed = true; return first }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := runLogged(t, backend())
				time.Sleep(1200 * time.Millisecond)
				assert.Subset(t, printed, l.entries(), "while it runs")
				time.Sleep(time.Minute)
				assert.Equal(t, printed, l.entries())
				assert.Contains(t, l.main().Message, "failed", "the termination message")
			})
		})
	}
}

// A machine has one stream.
func TestTheOutputOfAMachineIsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := runLogged(t, machines{&fakeHypervisor{below: newFake(nil)}})
		time.Sleep(1200 * time.Millisecond)
		l.restart()
		time.Sleep(time.Minute)
		assert.Equal(t, append(printed[:5:5], "stdout F failed"), l.entries())
	})
}

// failing is a backend whose output ends with an error after the first lines, if fails.
type failing struct {
	*containerstest.Backend
	fails func() bool
}

func (f failing) ReadLog(ctx context.Context, id string, skip containers.LogOffset, s runtime.Streams) error {
	if f.fails() {
		short, cancel := context.WithTimeout(ctx, 1200*time.Millisecond)
		defer cancel()
		_, err := s.Stdout.Write(nil)
		return errors.Join(err, f.Backend.ReadLog(short, id, skip, s), errors.New("connection lost"))
	}
	return f.Backend.ReadLog(ctx, id, skip, s)
}

// Neither a restart of the agent nor a rotation, in any order, loses or repeats output.
func TestALogContinuesAfterRestartsAndRotations(t *testing.T) {
	rotate := func(l *logged) {
		id := l.main().ID
		path, err := l.rt.LogPath(l.t.Context(), id)
		require.NoError(l.t, err)
		require.NoError(l.t, os.Rename(path, path+"."+time.Now().Format("150405.000")))
		require.NoError(l.t, l.rt.ReopenLog(l.t.Context(), id))
	}
	restart := (*logged).restart
	for name, steps := range map[string][]func(*logged){
		"restart":                   {restart},
		"twice":                     {restart, restart},
		"rotation":                  {rotate},
		"restart after a rotation":  {rotate, restart},
		"rotation after a restart":  {restart, rotate},
		"rotations, with a restart": {rotate, restart, rotate, restart},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := runLogged(t, newFake(nil))
				for _, step := range steps {
					time.Sleep(700 * time.Millisecond)
					step(l)
				}
				time.Sleep(time.Minute)
				assert.Equal(t, printed, l.entries())
				l.restart()
				time.Sleep(time.Second)
				assert.Equal(t, printed, l.entries(), "after the exit")
			})
		})
	}
}

// Output that never ends delays the exit by a second at most, and is not read after the removal.
func TestOutputThatNeverEndsDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := newFake(nil)
		below.Fault = func(c fake.Call) fake.Fault { return fake.Fault{Hang: c.Method == "ReadLog"} }
		l := runLogged(t, below)
		time.Sleep(3*time.Second + time.Millisecond)
		start := time.Now()
		assert.Equal(t, runtime.ContainerExited, l.main().State)
		assert.LessOrEqual(t, time.Since(start), time.Second)
		require.NoError(t, l.rt.KillPod(t.Context(), runtime.KillRequest{UID: l.pod.UID}))
		require.NoError(t, l.rt.CollectGarbage(t.Context(), runtime.GCPolicy{}))
	})
}

func TestTheLogOfAnExitedInstanceIsNotReopened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := runLogged(t, newFake(nil))
		time.Sleep(time.Minute)
		assert.Error(t, l.rt.ReopenLog(t.Context(), l.main().ID))
		assert.Equal(t, printed, l.entries())
	})
}
