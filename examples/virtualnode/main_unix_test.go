//go:build unix

package main

import (
	"bytes"
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/runtime"
)

// A node is the program as a node of a cluster in memory, and the VM service.
type node struct {
	api  *apitest.Server
	vms  machines
	args []string
}

func newNode(t *testing.T) node {
	t.Helper()
	short, err := os.MkdirTemp("", "vms") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	socket := filepath.Join(short, "s")
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- serve(ctx, socket) }()
	t.Cleanup(func() { stop(); assert.NoError(t, <-served) })

	n := node{api: new(apitest.Server), vms: newMachines(socket)}
	server := httptest.NewServer(n.api)
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.Contexts["c"], config.CurrentContext = &clientcmdapi.Cluster{Server: server.URL}, &clientcmdapi.Context{Cluster: "c"}, "c"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	n.args = []string{"--service", socket, "--kubeconfig", kubeconfig, "--node-name", "vms", "--root-dir", filepath.Join(t.TempDir(), "root"), "--port", "-1"}
	require.Eventually(t, func() bool { _, err := n.vms.List(t.Context()); return err == nil }, 90*time.Second, 10*time.Millisecond)
	return n
}

// start runs the program until the result is called.
func (n node) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, n.args, t.Output()) }()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func (n node) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 90*time.Second, 20*time.Millisecond, what)
}

func TestPodsAreMachines(t *testing.T) {
	n := newNode(t)
	stop := n.start(t)
	status := func() v1.PodStatus {
		if p := n.api.Pod("default", "web"); p != nil {
			return p.Status
		}
		return v1.PodStatus{}
	}
	n.api.Put(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: v1.PodSpec{
			NodeName: "vms", RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(1)),
			InitContainers: []v1.Container{{Name: "init", Image: "shell", Command: []string{"true"}}},
			Containers: []v1.Container{{
				Name: "main", Image: "shell", Command: []string{"sh", "-c", "echo $GREETING; exec sleep 1000"}, Env: []v1.EnvVar{{Name: "GREETING", Value: "hello"}},
				ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}, PeriodSeconds: 1},
			}},
		},
	})
	n.until(t, "ready", func() bool { s := status(); return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].Ready })

	states, err := n.vms.List(t.Context())
	require.NoError(t, err)
	require.Len(t, states, 2, "of the init container and of the container")
	id := states[0].ID
	if strings.Contains(id, "init") {
		id = states[1].ID
	}
	vm, err := get[machine](t.Context(), n.vms, "machines/"+id)
	require.NoError(t, err)
	n.until(t, "the console", func() bool {
		text, _ := os.ReadFile(vm.Console)
		return strings.Contains(string(text), " stdout F hello\n")
	})
	var out, errOut bytes.Buffer
	code, err := n.vms.Exec(t.Context(), id, []string{"sh", "-c", "cat; echo oops >&2; exit 3"}, runtime.Streams{Stdin: strings.NewReader("input"), Stdout: &out, Stderr: &errOut})
	require.NoError(t, err)
	assert.Equal(t, "3 input oops\n", strings.Join([]string{string(rune('0' + code)), out.String(), errOut.String()}, " "))

	// The machine outlives the program, and the next one adopts it.
	stop()
	stop = n.start(t)
	defer func() { stop() }()
	require.NoError(t, n.vms.Stop(t.Context(), id, 0)) // behind its back
	n.until(t, "restarted", func() bool {
		s := status()
		return s.ContainerStatuses[0].RestartCount == 1 && s.ContainerStatuses[0].Ready
	})
	assert.EqualValues(t, 137, status().ContainerStatuses[0].LastTerminationState.Terminated.ExitCode)

	pods := kubernetes.NewForConfigOrDie(n.api.RESTConfig()).CoreV1().Pods("default")
	require.NoError(t, pods.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	n.until(t, "no machine", func() bool { states, err := n.vms.List(t.Context()); return err == nil && len(states) == 0 })
}

func TestHelpAndMissingFlags(t *testing.T) {
	var out bytes.Buffer
	require.ErrorIs(t, run(t.Context(), []string{"--help"}, &out), flag.ErrHelp)
	for _, part := range []string{"Usage: virtualnode --service SOCKET", "tolerations: [{key: kubeparts.io/runtime", "-client-ca-file", "-node-name name"} {
		assert.Contains(t, out.String(), part)
	}
	assert.EqualError(t, run(t.Context(), nil, &out), "--service, --node-name and --kubeconfig are required; see --help")
}
