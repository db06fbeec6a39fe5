package apiserver_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/controllers/apiserver"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/hollow"
)

func testConnect(w *world, _ *hooks) {
	const pods = "/api/v1/namespaces/connect/pods"
	w.expect(201, "", "POST", pods, "metadata: {name: one}\nspec: {containers: [{name: main, image: web}]}")
	w.expect(201, "", "POST", pods, "metadata: {name: two}\nspec: {containers: [{name: a, image: web}, {name: b, image: web}]}")
	w.expect(404, `pods "absent" not found`, "GET", pods+"/absent/log", "")
	w.expect(204, "", "GET", pods+"/one/log", "") // without a node there is no log
	w.expect(400, "container x is not valid for pod one", "GET", pods+"/one/log?container=x", "")
	w.expect(400, "a container name must be specified for pod two, choose one of: [a b]", "GET", pods+"/two/log", "")
	w.expect(422, `PodLogOptions "one" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0`, "GET", pods+"/one/log?tailLines=-1", "")
	w.expect(400, "pod one does not have a host assigned", "POST", pods+"/one/exec?command=ls&stdout=true", "")
	w.expect(400, "container x is not valid for pod one", "POST", pods+"/one/attach?container=x&stdout=true", "")
	w.expect(400, "pod one does not have a host assigned", "POST", pods+"/one/portforward", "")
}

// TestLogsAndCommandsOfHollowNodes reads the log of a simulated pod, and executes a command.
func TestLogsAndCommandsOfHollowNodes(t *testing.T) {
	api := new(apitest.Server)
	nodes, err := fakenode.New(api.RESTConfig(), fakenode.Config{Nodes: fakenode.Many(1, fakenode.Node{Name: "node"})})
	require.NoError(t, err)
	kubelets, err := hollow.Kubelets(nodes, nil)
	require.NoError(t, err)
	stop, err := apiserver.Start(t.Context(), api, apiserver.Config{Kubelet: kubelets})
	require.NoError(t, err)
	t.Cleanup(stop)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- nodes.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-stopped)
	})
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	pods := clients.CoreV1().Pods("default")
	_, err = pods.Create(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{fakenode.Annotation: `log="line %d";every=10ms,command="ls /";stdout=bin;code=3`}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		pod, err := pods.Get(ctx, "web", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == v1.PodRunning
	}, minute, tick)

	_, err = pods.GetLogs("web", &v1.PodLogOptions{Previous: true}).Stream(ctx)
	assert.EqualError(t, err, `previous terminated container "main" in pod "web" not found`, "the error of the kubelet")
	stream, err := pods.GetLogs("web", &v1.PodLogOptions{Follow: true}).Stream(ctx)
	require.NoError(t, err)
	lines := bufio.NewScanner(stream)
	for range 3 { // more than there were when the request began
		require.True(t, lines.Scan())
		assert.Contains(t, lines.Text(), "line ")
	}
	require.NoError(t, stream.Close())

	url := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name("web").SubResource("exec").
		Param("command", "ls").Param("command", "/").Param("stdout", "true").URL()
	exec, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, url)
	require.NoError(t, err)
	var out strings.Builder
	err = exec.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out})
	assert.EqualError(t, err, "command terminated with exit code 3")
	assert.Equal(t, "bin", out.String())

	res, err := http.Get(server.URL + "/api/v1/nodes/node-0/proxy/healthz")
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, "ok", string(body))
}
