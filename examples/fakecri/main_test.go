package main

import (
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
)

// output is what the program has printed.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// begin runs the program until the test ends.
func begin(t *testing.T, args ...string) (*output, string) {
	t.Helper()
	if goruntime.GOOS == "windows" {
		t.Skip("CRI runtimes listen at named pipes there")
	}
	socket := filepath.Join(t.TempDir(), "s")
	out := new(output)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, append(args, "--listen", "unix://"+socket), out) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
		assert.NoFileExists(t, socket)
	})
	for end := time.Now().Add(90 * time.Second); !strings.Contains(out.String(), "until Ctrl-C"); {
		require.True(t, time.Now().Before(end), "it does not serve")
		pause(t, 5*time.Millisecond)
	}
	return out, socket
}

func pause(t *testing.T, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// The engine of this house runs a pod on it, through the socket.
func TestAPodLivesThroughTheSocket(t *testing.T) {
	port := freePort(t)
	file := filepath.Join(t.TempDir(), "node.txt")
	text := `container web log="hello %d";every=10ms http=` + port + ` command="";stdout=hi`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, socket := begin(t, "--behaviors", file, "-v")
	client, err := remote.Dial(t.Context(), socket, remote.Config{})
	require.NoError(t, err)
	defer client.Close(context.Background())
	dir := t.TempDir()
	rt, err := cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images, Calls: cri.CallConfig{Streams: new(streaming.Client)},
		Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/pods", ContainerLogs: dir + "/containers"},
	})
	require.NoError(t, err)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "u1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "web", Image: "busybox"}}},
	}
	st, err := rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Status: st})
	require.NoError(t, err)
	st, err = rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	require.True(t, st.Running())
	web := st.Container("web")
	require.NotNil(t, web)

	answer, err := rt.Exec(t.Context(), web.ID, []string{"uname"}, time.Second)
	require.NoError(t, err)
	assert.Equal(t, "hi", string(answer.Stdout))
	var shown bytes.Buffer
	_, err = rt.StreamExec(t.Context(), web.ID, []string{"uname"}, runtime.Streams{Stdout: &shown})
	require.NoError(t, err)
	assert.Equal(t, "hi", shown.String())
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	require.NoError(t, err, "it really listens")
	conn.Close()
	log, err := rt.LogPath(t.Context(), web.ID)
	require.NoError(t, err)
	for end := time.Now().Add(90 * time.Second); ; pause(t, 5*time.Millisecond) {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		if strings.Contains(string(text), " stdout F hello 2\n") {
			break
		}
		require.True(t, time.Now().Before(end), "%s", text)
	}

	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
	for _, method := range []string{"Version", "RunPodSandbox", "PullImage", "CreateContainer", "StartContainer", "StopContainer"} {
		assert.Equal(t, 1, strings.Count(out.String(), " "+method+" "), "%s in:\n%s", method, out)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

func TestTheExampleFileIsRight(t *testing.T) {
	begin(t, "--behaviors", "node.txt", "--endpoints=false")
}

func TestErrorsNameTheInvalidArgument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.txt")
	require.NoError(t, os.WriteFile(file, []byte("container web runfor=1s"), 0o600))
	for want, args := range map[string][]string{
		"not a unix socket":             {"--listen", "tcp://127.0.0.1:1"},
		`unexpected argument "now"`:     {"now"},
		"no such file or directory":     {"--behaviors", file + ".not"},
		file + ": fake: line 1: web: ":  {"--behaviors", file},
		"flag provided but not defined": {"--nonsense"},
	} {
		assert.ErrorContains(t, run(t.Context(), args, new(output)), want)
	}
	out := new(output)
	assert.ErrorIs(t, run(t.Context(), []string{"--help"}, out), flag.ErrHelp)
	for _, want := range []string{"--behaviors FILE", "fakecri.kubeparts.io/behavior", "-seed number"} {
		assert.Contains(t, out.String(), want)
	}
}
