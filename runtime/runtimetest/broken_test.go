package runtimetest_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A broken runtime is the runtime in memory with some methods replaced.
type broken struct {
	*full
	over    chan struct{} // closed when the check is over
	pods    func(context.Context) ([]*runtime.Pod, error)
	status  func(context.Context, types.UID) (*runtime.PodStatus, error)
	sync    func(context.Context, runtime.SyncRequest) (runtime.SyncResult, error)
	kill    func(context.Context, runtime.KillRequest) error
	watch   func(context.Context, func(types.UID)) error
	exec    func(context.Context, string, []string, time.Duration) (runtime.ExecResult, error)
	stream  func(context.Context, string, []string, runtime.Streams) (int32, error)
	collect func(context.Context, runtime.GCPolicy) error

	check      func(context.Context) (runtime.Health, error)
	attach     func(context.Context, string, runtime.Streams) error
	forward    func(context.Context, types.UID, int32, io.ReadWriteCloser) error
	execURL    func(context.Context, string, []string, runtime.StreamOptions) (*url.URL, error)
	logPath    func(context.Context, string) (string, error)
	reopenLog  func(context.Context, string) error
	stats      func(context.Context, string) (*runtime.ContainerStats, error)
	podStats   func(context.Context) ([]runtime.PodStats, error)
	imageFS    func(context.Context) (images, containers []runtime.FSUsage, err error)
	features   func(context.Context) (runtime.Features, error)
	driver     func(context.Context) (runtime.CgroupDriver, error)
	checkpoint func(context.Context, string, string, time.Duration) error
	update     func(context.Context, string, v1.ResourceRequirements) error

	podCheckpoint func(context.Context, *v1.Pod, string) error
}

func newBroken(t *testing.T, breakIt func(b *broken, rt *runtimetest.Runtime)) *broken {
	rt := memory()
	f := &full{Runtime: rt, dir: t.TempDir()}
	b := &broken{
		full: f, over: make(chan struct{}), pods: rt.Pods, status: f.PodStatus, sync: rt.SyncPod, kill: rt.KillPod,
		watch: rt.Watch, exec: rt.Exec, stream: f.StreamExec, collect: rt.CollectGarbage,
		check: rt.Check, attach: f.Attach, forward: f.PortForward, execURL: f.ExecURL, logPath: f.LogPath, reopenLog: f.ReopenLog,
		stats: f.ContainerStats, podStats: f.PodStats, imageFS: f.ImageFS, features: f.Features, driver: f.CgroupDriver,
		checkpoint: f.Checkpoint, podCheckpoint: f.CheckpointPod, update: f.UpdateResources,
	}
	t.Cleanup(func() { close(b.over) })
	breakIt(b, rt)
	return b
}

func (b *broken) Check(ctx context.Context) (runtime.Health, error) { return b.check(ctx) }

func (b *broken) Attach(ctx context.Context, id string, s runtime.Streams) error {
	return b.attach(ctx, id, s)
}

func (b *broken) PortForward(ctx context.Context, uid types.UID, port int32, conn io.ReadWriteCloser) error {
	return b.forward(ctx, uid, port, conn)
}

func (b *broken) ExecURL(ctx context.Context, id string, cmd []string, o runtime.StreamOptions) (*url.URL, error) {
	return b.execURL(ctx, id, cmd, o)
}

func (b *broken) LogPath(ctx context.Context, id string) (string, error) { return b.logPath(ctx, id) }
func (b *broken) ReopenLog(ctx context.Context, id string) error         { return b.reopenLog(ctx, id) }

func (b *broken) ContainerStats(ctx context.Context, id string) (*runtime.ContainerStats, error) {
	return b.stats(ctx, id)
}

func (b *broken) PodStats(ctx context.Context) ([]runtime.PodStats, error) { return b.podStats(ctx) }

func (b *broken) ImageFS(ctx context.Context) (images, containers []runtime.FSUsage, err error) {
	return b.imageFS(ctx)
}

func (b *broken) Features(ctx context.Context) (runtime.Features, error) { return b.features(ctx) }

func (b *broken) CgroupDriver(ctx context.Context) (runtime.CgroupDriver, error) {
	return b.driver(ctx)
}

func (b *broken) Checkpoint(ctx context.Context, id, location string, timeout time.Duration) error {
	return b.checkpoint(ctx, id, location, timeout)
}

func (b *broken) CheckpointPod(ctx context.Context, pod *v1.Pod, location string) error {
	return b.podCheckpoint(ctx, pod, location)
}

func (b *broken) UpdateResources(ctx context.Context, id string, r v1.ResourceRequirements) error {
	return b.update(ctx, id, r)
}

func (b *broken) Pods(ctx context.Context) ([]*runtime.Pod, error) { return b.pods(ctx) }

func (b *broken) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b.status(ctx, uid)
}

func (b *broken) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if req.Pod == nil {
		return b.Runtime.SyncPod(ctx, req)
	}
	return b.sync(ctx, req)
}

func (b *broken) KillPod(ctx context.Context, req runtime.KillRequest) error { return b.kill(ctx, req) }

func (b *broken) Watch(ctx context.Context, changed func(types.UID)) error {
	return b.watch(ctx, changed)
}

func (b *broken) Exec(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
	return b.exec(ctx, id, cmd, timeout)
}

func (b *broken) StreamExec(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
	return b.stream(ctx, id, cmd, s)
}

func (b *broken) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	return b.collect(ctx, policy)
}

var errBroken = errors.New("broken on purpose")

const control = "nothing is broken"

// A test cannot expect the failure of its own subtests: the test runs itself in another
// process, in which the broken runtimes run the suite, and checks the output of
// that.
func TestTheSuiteNamesTheViolatedRequirement(t *testing.T) {
	const child = "RUNTIMETEST_BROKEN"
	if os.Getenv(child) != "" {
		runBroken(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.CombinedOutput()
	failed, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, "the child process succeeded or did not run: %v", err)
	require.Equal(t, 1, failed.ExitCode(), "%s", out)

	ran, broke := map[string]bool{}, map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^\s+--- (PASS|FAIL|SKIP): `+t.Name()+`/([^/\s]+)/(\S+) `).FindAllStringSubmatch(string(out), -1) {
		outcome, violation, requirement := m[1], m[2], m[3]
		if outcome == "SKIP" {
			assert.NotEqual(t, violation, requirement)
			continue
		}
		ran[requirement] = true
		if outcome == "FAIL" {
			broke[violation] = append(broke[violation], requirement)
		}
	}
	require.NotEmpty(t, ran, "%s", out)
	total := 0
	violations := allViolations()
	for violation := range violations {
		assert.Contains(t, broke[violation], violation)
		total += len(broke[violation])
	}
	for requirement := range ran {
		assert.Contains(t, violations, requirement, "no broken runtime shows that this requirement is checked")
	}
	for _, check := range runtimetest.Checks() {
		assert.True(t, ran[check.Name], "%s did not run", check.Name)
	}
	assert.Empty(t, broke["nothing_is_broken"])
	assert.Len(t, regexp.MustCompile(`violated requirement: \S`).FindAllString(string(out), -1), total, "each failure contains the promise")
}

func allViolations() map[string]func(*broken, *runtimetest.Runtime) {
	all := maps.Clone(lifeViolations)
	maps.Copy(all, inspectViolations)
	maps.Copy(all, syncViolations)
	maps.Copy(all, powerViolations)
	maps.Copy(all, changeViolations)
	maps.Copy(all, queueViolations)
	return all
}

func runBroken(t *testing.T) {
	s := memorySuite()
	s.Timing.Timeout = 10 * time.Second // nothing that takes longer in virtual time is right
	t.Run(control, func(t *testing.T) { runtimetest.TestRuntime(t, newFull, s) })
	for name, breakIt := range allViolations() {
		t.Run(name, func(t *testing.T) {
			s := s
			s.Within = func(t *testing.T, body func(t *testing.T)) {
				if !strings.HasSuffix(t.Name(), "/"+name) {
					t.SkipNow() // one check per broken runtime is quick
				}
				synctest.Test(t, body)
			}
			switch name {
			case "StateSurvivesAgentRestart", "OrphanSurvivesAgentRestart":
				s.Backend.Reopen = func(t *testing.T, _ runtime.Runtime) runtime.Runtime { return newFull(t) }
			case "QueuedContainerIsListed", "KillCancelsQueuedStart":
				s.Queued = true
			case "RestartCountsSurviveAgentRestart":
				s.Backend.Reopen = forgetful
			}
			runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime { return newBroken(t, breakIt) }, s)
		})
	}
}
