//go:build linux || darwin

package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestAContainerIsCreatedRunsExitsAndIsRemoved(t *testing.T) {
	n := newNode(t)
	ctx := t.Context()
	s := n.sandbox("web")
	id, err := n.CreateContainer(ctx, s, sh("app", "echo hello; read x < /dev/null; exit 3"), nil)
	require.NoError(t, err)
	st := n.status(id)
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_CREATED, st.GetState())
	assert.Positive(t, st.GetCreatedAt())

	require.NoError(t, n.StartContainer(ctx, id))
	st = n.exited(id)
	assert.EqualValues(t, 3, st.GetExitCode())
	assert.Equal(t, "Error", st.GetReason())
	assert.LessOrEqual(t, st.GetCreatedAt(), st.GetStartedAt())
	assert.LessOrEqual(t, st.GetStartedAt(), st.GetFinishedAt())
	assert.Equal(t, "example.com/none:1", st.GetImageRef())
	assert.Equal(t, filepath.Join(n.logs, "web", "app", "0.log"), st.GetLogPath())
	assert.Regexp(t, regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z stdout F hello\n$`), n.log("web", "app"))

	assert.Equal(t, codes.FailedPrecondition, status.Code(n.StartContainer(ctx, id)), "an instance starts once")
	require.NoError(t, n.StopContainer(ctx, id, 5), "stopping an exited container is no error")
	require.NoError(t, n.RemoveContainer(ctx, id))
	require.NoError(t, n.RemoveContainer(ctx, id), "removing twice is no error")
	_, err = n.ContainerStatus(ctx, id, false)
	assert.Equal(t, codes.NotFound, status.Code(err))

	require.NoError(t, n.StopPodSandbox(ctx, s))
	require.NoError(t, n.StopPodSandbox(ctx, s))
	require.NoError(t, n.RemovePodSandbox(ctx, s))
	require.NoError(t, n.RemovePodSandbox(ctx, s))
	_, err = n.PodSandboxStatus(ctx, s, false)
	assert.Equal(t, codes.NotFound, status.Code(err))
	for _, dir := range []string{"sandboxes", "containers", "exits", "tmp"} {
		left, err := os.ReadDir(filepath.Join(n.dir, dir))
		require.NoError(t, err)
		assert.Empty(t, left, dir)
	}
	assert.FileExists(t, filepath.Join(n.logs, "web", "app", "0.log"), "logs belong to the caller")
}

func TestExitCodesAndReasons(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("exits")
	for _, tc := range []struct {
		script string
		code   int32
		reason string
	}{
		{"exit 0", 0, "Completed"},
		{"exit 1", 1, "Error"},
		{"exit 255", 255, "Error"},
		{"kill -KILL $$", 137, "Error"},
		{"kill -TERM $$", 143, "Error"},
		{"kill -SEGV $$", 139, "Error"},
	} {
		t.Run(tc.script, func(t *testing.T) {
			st := n.exited(n.start(s, sh(strings.ReplaceAll(tc.script, " ", ""), tc.script)))
			assert.Equal(t, tc.code, st.GetExitCode())
			assert.Equal(t, tc.reason, st.GetReason())
		})
	}
}

func TestStopSendsTERMAndKillsTheGroupAfterTheTimeout(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("stop")
	t.Run("TERM is enough", func(t *testing.T) {
		id := n.start(s, sh("polite", `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done`))
		n.logged("stop", "polite", "ready")
		begin := time.Now()
		require.NoError(t, n.StopContainer(t.Context(), id, 1000))
		assert.Less(t, time.Since(begin), patience)
		assert.EqualValues(t, 7, n.status(id).GetExitCode())
		assert.Contains(t, n.log("stop", "polite"), " F bye\n")
	})
	t.Run("another stop signal", func(t *testing.T) {
		cfg := sh("usr1", `trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done`)
		cfg.StopSignal = runtimeapi.Signal_SIGNAL_SIGUSR1
		id := n.start(s, cfg)
		n.logged("stop", "usr1", "ready")
		require.NoError(t, n.StopContainer(t.Context(), id, 30))
		assert.EqualValues(t, 9, n.status(id).GetExitCode())
		assert.Equal(t, runtimeapi.Signal_SIGNAL_SIGUSR1, n.status(id).GetStopSignal())
	})
	t.Run("TERM is ignored", func(t *testing.T) {
		id := n.start(s, sh("deaf", `trap '' TERM; sleep 1000 & echo child $!; while :; do sleep 0.01; done`))
		n.logged("stop", "deaf", "child")
		var child int
		_, after, _ := strings.Cut(n.log("stop", "deaf"), "child ")
		_, err := fmt.Sscan(after, &child)
		require.NoError(t, err)
		begin := time.Now()
		require.NoError(t, n.StopContainer(t.Context(), id, 1))
		assert.GreaterOrEqual(t, time.Since(begin), time.Second)
		assert.EqualValues(t, 137, n.status(id).GetExitCode())
		assert.ErrorIs(t, syscall.Kill(child, 0), syscall.ESRCH, "the process group is killed with its leader")
	})
	t.Run("zero kills at once", func(t *testing.T) {
		id := n.start(s, sh("now", `trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done`))
		n.logged("stop", "now", "ready")
		require.NoError(t, n.StopContainer(t.Context(), id, 0))
		assert.EqualValues(t, 137, n.status(id).GetExitCode())
	})
	t.Run("unknown and created ones", func(t *testing.T) {
		require.NoError(t, n.StopContainer(t.Context(), "absent", 0))
		id, err := n.CreateContainer(t.Context(), s, sh("created", "exit 0"), nil)
		require.NoError(t, err)
		require.NoError(t, n.StopContainer(t.Context(), id, 0))
	})
}

func TestProcessesThatTheMainProcessLeavesBehindAreKilled(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("rest")
	script := `sleep 1000 & echo $! > group`
	if linux {
		script += `; setsid sh -c 'echo $$ > session; exec sleep 1000' & while ! test -s session; do sleep 0.01; done`
	}
	cfg := sh("app", script)
	cfg.WorkingDir = t.TempDir()
	id := n.start(s, cfg)
	assert.EqualValues(t, 0, n.exited(id).GetExitCode())
	for _, name := range []string{"group", "session"} {
		if name == "session" && !linux {
			continue
		}
		data, err := os.ReadFile(filepath.Join(cfg.WorkingDir, name))
		require.NoError(t, err)
		var pid int
		_, err = fmt.Sscan(string(data), &pid)
		require.NoError(t, err)
		assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, name)
	}
}

func TestStoppingASandboxKillsItsContainersAndForbidsStarts(t *testing.T) {
	n := newNode(t)
	ctx := t.Context()
	s := n.sandbox("pod")
	running := n.start(s, sh("a", "sleep 1000"))
	created, err := n.CreateContainer(ctx, s, sh("b", "sleep 1000"), nil)
	require.NoError(t, err)
	resp, err := n.PodSandboxStatus(ctx, s, false)
	require.NoError(t, err)
	ip := resp.GetStatus().GetNetwork().GetIp()
	assert.Regexp(t, `^127\.`, ip)

	require.NoError(t, n.StopPodSandbox(ctx, s))
	assert.EqualValues(t, 137, n.status(running).GetExitCode())
	resp, err = n.PodSandboxStatus(ctx, s, false)
	require.NoError(t, err)
	assert.Equal(t, runtimeapi.PodSandboxState_SANDBOX_NOTREADY, resp.GetStatus().GetState())
	assert.Empty(t, resp.GetStatus().GetNetwork().GetIp())
	assert.Equal(t, codes.FailedPrecondition, status.Code(n.StartContainer(ctx, created)))
	_, err = n.CreateContainer(ctx, s, sh("c", "true"), nil)
	assert.Equal(t, codes.FailedPrecondition, status.Code(err))
}

func TestASandboxInTheHostsNetworkHasNoAddress(t *testing.T) {
	n := newNode(t)
	id, err := n.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "host", Namespace: "default", Uid: "1"},
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE},
		}},
	}, "")
	require.NoError(t, err)
	resp, err := n.PodSandboxStatus(t.Context(), id, false)
	require.NoError(t, err)
	assert.Empty(t, resp.GetStatus().GetNetwork().GetIp())
	assert.Equal(t, runtimeapi.NamespaceMode_NODE, resp.GetStatus().GetLinux().GetNamespaces().GetOptions().GetNetwork())
}

func TestTheSameAttemptIsNeverMadeTwice(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("pod")
	_, err := n.CreateContainer(t.Context(), s, sh("a", "true"), nil)
	require.NoError(t, err)
	_, err = n.CreateContainer(t.Context(), s, sh("a", "true"), nil)
	assert.Equal(t, codes.AlreadyExists, status.Code(err))
	next := sh("a", "true")
	next.Metadata.Attempt = 1
	_, err = n.CreateContainer(t.Context(), s, next, nil)
	require.NoError(t, err)
	_, err = n.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "pod", Namespace: "default", Uid: "uid-pod"},
	}, "")
	assert.Equal(t, codes.AlreadyExists, status.Code(err))
}

func TestRuntimeHandlersAreRejected(t *testing.T) {
	n := newNode(t)
	_, err := n.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "default", Uid: "1"},
	}, "gvisor")
	assert.Equal(t, codes.InvalidArgument, status.Code(err))
	assert.ErrorContains(t, err, "gvisor")
}

func TestASandboxWithoutNameUIDOrNamespaceIsRejected(t *testing.T) {
	n := newNode(t)
	for missing, meta := range map[string]*runtimeapi.PodSandboxMetadata{
		"name": {Namespace: "default", Uid: "1"}, "uid": {Name: "p", Namespace: "default"}, "namespace": {Name: "p", Uid: "1"},
	} {
		_, err := n.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{Metadata: meta}, "")
		assert.Equal(t, codes.InvalidArgument, status.Code(err), missing)
		assert.ErrorContains(t, err, "no "+missing)
	}
	list, err := n.ListPodSandbox(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, list)
}

func TestListsKeepToTheirFilters(t *testing.T) {
	n := newNode(t)
	ctx := t.Context()
	one, two := n.sandbox("one"), n.sandbox("two")
	require.NoError(t, n.StopPodSandbox(ctx, two))
	a := n.start(one, sh("a", "sleep 1000"))
	b := n.start(one, sh("b", "true"))
	n.exited(b)
	c, err := n.CreateContainer(ctx, one, sh("c", "true"), nil)
	require.NoError(t, err)

	state := func(s runtimeapi.ContainerState) *runtimeapi.ContainerFilter {
		return &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: s}}
	}
	for name, tc := range map[string]struct {
		filter *runtimeapi.ContainerFilter
		want   []string
	}{
		"none":       {nil, []string{a, b, c}},
		"id":         {&runtimeapi.ContainerFilter{Id: b}, []string{b}},
		"created":    {state(runtimeapi.ContainerState_CONTAINER_CREATED), []string{c}},
		"running":    {state(runtimeapi.ContainerState_CONTAINER_RUNNING), []string{a}},
		"exited":     {state(runtimeapi.ContainerState_CONTAINER_EXITED), []string{b}},
		"sandbox":    {&runtimeapi.ContainerFilter{PodSandboxId: two}, nil},
		"label":      {&runtimeapi.ContainerFilter{LabelSelector: map[string]string{"container": "a"}}, []string{a}},
		"both parts": {&runtimeapi.ContainerFilter{Id: b, LabelSelector: map[string]string{"container": "a"}}, nil},
	} {
		list, err := n.ListContainers(ctx, tc.filter)
		require.NoError(t, err)
		var got []string
		for _, c := range list {
			got = append(got, c.GetId())
		}
		assert.ElementsMatch(t, tc.want, got, name)
	}
	for name, tc := range map[string]struct {
		filter *runtimeapi.PodSandboxFilter
		want   []string
	}{
		"none":  {nil, []string{one, two}},
		"id":    {&runtimeapi.PodSandboxFilter{Id: one}, []string{one}},
		"ready": {&runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}}, []string{one}},
		"label": {&runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"pod": "two"}}, []string{two}},
	} {
		list, err := n.ListPodSandbox(ctx, tc.filter)
		require.NoError(t, err)
		var got []string
		for _, s := range list {
			got = append(got, s.GetId())
		}
		assert.ElementsMatch(t, tc.want, got, name)
	}
	images, err := n.ListImages(ctx, nil)
	require.NoError(t, err)
	require.Len(t, images, 1)
	assert.Equal(t, "example.com/none:1", images[0].GetId())
}

func TestFiftyContainersAtOnce(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("many")
	const count = 50
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() {
			id, err := n.CreateContainer(t.Context(), s, sh(fmt.Sprint("c", i), fmt.Sprintf("echo %d; exit %d", i, i)), nil)
			if !assert.NoError(t, err) || !assert.NoError(t, n.StartContainer(t.Context(), id)) {
				return
			}
			assert.NoError(t, n.StopContainer(t.Context(), id, 60))
			resp, err := n.ContainerStatus(t.Context(), id, false)
			if assert.NoError(t, err) {
				assert.Equal(t, runtimeapi.ContainerState_CONTAINER_EXITED, resp.GetStatus().GetState())
			}
		})
	}
	wg.Wait()
	list, err := n.ListContainers(t.Context(), nil)
	require.NoError(t, err)
	assert.Len(t, list, count)
}

func TestASandboxWithoutItsDirectoryCanBeStopped(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("web")
	c := n.start(s, sh("main", "sleep 100"))
	require.NoError(t, os.RemoveAll(filepath.Join(n.dir, "sandboxes", s)))
	require.NoError(t, n.StopPodSandbox(t.Context(), s))
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_EXITED, n.status(c).GetState())
	resp, err := n.PodSandboxStatus(t.Context(), s, false)
	require.NoError(t, err)
	assert.Equal(t, runtimeapi.PodSandboxState_SANDBOX_NOTREADY, resp.GetStatus().GetState())
}
