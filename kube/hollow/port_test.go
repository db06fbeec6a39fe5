package hollow_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/hollow"
)

// A served cluster has nodes with ports on the loopback interface, in real time.
type served struct {
	t    testing.TB
	api  *apitest.Server
	stop func()
}

// serve runs nodes with pods, by name and behavior, on node "n0".
func serve(t testing.TB, access auth.Authenticator, pods map[string]string) *served {
	t.Helper()
	s := &served{t: t, api: new(apitest.Server)}
	nodes, err := hollow.New(s.api.RESTConfig(), hollow.Config{
		Port: hollow.Port{IP: netip.MustParseAddr("127.0.0.1"), Authenticator: access, Authorizer: auth.AlwaysAllow{}},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- nodes.Run(ctx) }()
	s.stop = func() {
		cancel()
		assert.NoError(t, <-stopped)
	}
	for i := range 2 {
		s.api.Put(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{"type": "kwok"}}})
	}
	for name, behavior := range pods {
		s.api.Put(&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: annotations(behavior)},
			Spec:       v1.PodSpec{NodeName: "n0", Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
		})
	}
	for name := range pods {
		require.Eventually(t, func() bool { return s.api.Pod("default", name).Status.Phase == v1.PodRunning }, 30*time.Second, 10*time.Millisecond, name)
	}
	for i := range 2 {
		require.Eventually(t, func() bool { return s.node(i).Status.DaemonEndpoints.KubeletEndpoint.Port > 0 }, 30*time.Second, 10*time.Millisecond)
	}
	return s
}

// annotations returns the annotations of a pod with a behavior, or with pairs of kwok's: "usage-cpu=1".
func annotations(text string) map[string]string {
	if !strings.HasPrefix(text, "usage-") {
		return map[string]string{fakenode.Annotation: text}
	}
	out := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		out["kwok.x-k8s.io/"+name] = value
	}
	return out
}

func (s *served) node(i int) *v1.Node { return s.api.Get("nodes", "", fmt.Sprint("n", i)).(*v1.Node) }

// url returns the address of a path of a node, according to its status.
func (s *served) url(i int, path string) *url.URL {
	status := s.node(i).Status
	u, err := url.Parse(fmt.Sprintf("http://%s:%d%s", status.Addresses[0].Address, status.DaemonEndpoints.KubeletEndpoint.Port, path))
	require.NoError(s.t, err)
	return u
}

func (s *served) get(i int, path string) (int, string) {
	s.t.Helper()
	resp, err := http.Get(s.url(i, path).String())
	require.NoError(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(body)
}

func TestKwoksAnnotationsAreTheUsage(t *testing.T) {
	s := serve(t, auth.Anonymous{}, map[string]string{"web": "usage-cpu=250m,usage-memory=64Mi", "none": "usage-cpu=-1,usage-memory=much", "some": "usage-memory=1G"})
	defer s.stop()
	var summary statsapi.Summary
	_, text := s.get(0, "/stats/summary")
	require.NoError(t, json.Unmarshal([]byte(text), &summary))
	usage := map[string]string{}
	for _, pod := range summary.Pods {
		usage[pod.PodRef.Name] = fmt.Sprint(*pod.CPU.UsageNanoCores, " ", *pod.Memory.WorkingSetBytes)
	}
	assert.Equal(t, map[string]string{"web": "250000000 67108864", "none": "0 0", "some": "0 1000000000"}, usage)
}

func TestNodesHaveDifferentPorts(t *testing.T) {
	s := serve(t, auth.Anonymous{}, map[string]string{"web": `log="line %d";every=1ms;times=5,cpu=250m,memory=64Mi`})
	assert.NotEqual(t, s.url(0, "").String(), s.url(1, "").String())
	for i, want := range []int{1, 0} {
		var pods v1.PodList
		_, text := s.get(i, "/pods")
		require.NoError(t, json.Unmarshal([]byte(text), &pods))
		require.Len(t, pods.Items, want)
		for _, p := range pods.Items {
			assert.Equal(t, v1.PodRunning, p.Status.Phase)
			assert.Nil(t, p.Spec.Containers[0].ReadinessProbe, "as the API server has it")
		}
	}
	code, text := s.get(1, "/healthz")
	assert.Equal(t, "200 ok", fmt.Sprint(code, " ", text))
	code, _ = s.get(1, "/containerLogs/default/web/main")
	assert.Equal(t, http.StatusNotFound, code, "the pod is on another node")

	var summary statsapi.Summary
	_, text = s.get(0, "/stats/summary")
	require.NoError(t, json.Unmarshal([]byte(text), &summary))
	require.Len(t, summary.Pods, 1)
	assert.EqualValues(t, 250e6, *summary.Pods[0].CPU.UsageNanoCores)
	assert.EqualValues(t, 64<<20, *summary.Pods[0].Containers[0].Memory.WorkingSetBytes)
	assert.EqualValues(t, 64<<20, *summary.Node.Memory.WorkingSetBytes)
	_, text = s.get(0, "/metrics/resource")
	assert.Contains(t, text, `container_memory_working_set_bytes{container="main",namespace="default",pod="web"} 6.7108864e+07`)
	assert.Contains(t, text, "\nnode_cpu_usage_seconds_total ")
	_, text = s.get(1, "/metrics/resource")
	assert.Contains(t, text, "node_memory_working_set_bytes 0")

	// A node that is deleted is not served any longer.
	other := s.url(1, "/healthz").String()
	s.api.Remove("nodes", "", "n1")
	require.Eventually(t, func() bool {
		resp, err := http.Get(other)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err != nil || resp.StatusCode == http.StatusNotFound
	}, 30*time.Second, 10*time.Millisecond)
	s.stop()
	_, err := http.Get(other)
	assert.Error(t, err)
}

func TestRequestsAreAuthenticated(t *testing.T) {
	s := serve(t, auth.Chain{}, nil)
	defer s.stop()
	for _, path := range []string{"/pods", "/metrics/resource", "/stats/summary"} {
		code, _ := s.get(0, path)
		assert.Equal(t, http.StatusUnauthorized, code, path)
	}
}

func TestLogsAreWhatBehaviorsPrint(t *testing.T) {
	s := serve(t, auth.Anonymous{}, map[string]string{
		"web":     `log="first",log="line %d";every=1ms;times=5,log="bad"@1ms;stderr`,
		"endless": `log="tick %d";every=10ms`,
		"silent":  "",
		"crashes": `exit=1@300ms,crashes=1,log="attempt"`,
	})
	defer s.stop()
	const web = "/containerLogs/default/web/main"
	require.Eventually(t, func() bool {
		_, text := s.get(0, web)
		return strings.HasSuffix(text, "bad\n")
	}, 10*time.Second, 10*time.Millisecond)
	for query, want := range map[string]string{
		"":                                "first\nline 1\nline 2\nline 3\nline 4\nline 5\nbad\n",
		"?tailLines=2":                    "line 5\nbad\n",
		"?tailLines=0":                    "",
		"?tailLines=100":                  "first\nline 1\nline 2\nline 3\nline 4\nline 5\nbad\n",
		"?limitBytes=8":                   "first\nli",
		"?stream=Stderr":                  "bad\n",
		"?stream=Stdout&limitBytes=3":     "fir",
		"?sinceTime=2100-01-01T00:00:00Z": "",
	} {
		code, text := s.get(0, web+query)
		assert.Equal(t, http.StatusOK, code, query)
		assert.Equal(t, want, text, query)
	}
	_, text := s.get(0, web+"?timestamps=true&tailLines=1")
	at, line, _ := strings.Cut(text, " ")
	assert.Equal(t, "bad\n", line)
	when, err := time.Parse(time.RFC3339Nano, at)
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), when, time.Minute)
	_, text = s.get(0, "/containerLogs/default/silent/main")
	assert.Empty(t, text)

	// A follower receives the lines that are printed later.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.url(0, "/containerLogs/default/endless/main?follow=true&tailLines=1").String(), nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var first, second int
	_, err = fmt.Fscanf(resp.Body, "tick %d\ntick %d\n", &first, &second)
	require.NoError(t, err)
	assert.Equal(t, first+1, second)

	// The log of the instance that has crashed.
	require.Eventually(t, func() bool { return restarts(s.api, "crashes") == 1 }, 30*time.Second, 10*time.Millisecond)
	_, text = s.get(0, "/containerLogs/default/crashes/main?previous=true")
	assert.Equal(t, "attempt\n", text)
}

func restarts(api *apitest.Server, name string) int32 {
	return api.Pod("default", name).Status.ContainerStatuses[0].RestartCount
}

func TestCommandsRunInContainers(t *testing.T) {
	s := serve(t, auth.Anonymous{}, map[string]string{
		"web":   `command="cat";echo,command="ls /";stdout="bin etc";stderr=warning;code=3,http=8080,tcp=9090`,
		"plain": "", "logs": `log="tick";every=10ms`,
	})
	defer s.stop()
	stream := func(path, input string) (stdout, stderr string, err error) {
		t.Helper()
		e, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: s.url(0, "").Host}, "POST", s.url(0, path))
		require.NoError(t, err)
		var out, errOut bytes.Buffer
		options := remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut}
		if input != "" {
			options.Stdin = strings.NewReader(input)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err = e.StreamWithContext(ctx, options)
		return out.String(), errOut.String(), err
	}
	stdout, _, err := stream("/exec/default/web/main?command=cat&input=1&output=1&error=1", "hello")
	require.NoError(t, err)
	assert.Equal(t, "hello", stdout)
	stdout, stderr, err := stream("/exec/default/web/main?command=ls&command=/&output=1&error=1", "")
	assert.ErrorContains(t, err, "exit code 3")
	assert.Equal(t, "bin etc warning", stdout+" "+stderr)
	stdout, _, err = stream("/exec/default/plain/main?command=true&output=1&error=1", "")
	require.NoError(t, err)
	assert.Empty(t, stdout)
	stdout, _, err = stream("/attach/default/plain/main?input=1&output=1&error=1", "echoed")
	require.NoError(t, err)
	assert.Equal(t, "echoed", stdout)

	roundTripper, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
	require.NoError(t, err)
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: roundTripper}, "POST", s.url(0, "/portForward/default/web"))
	stop, ready := make(chan struct{}), make(chan struct{})
	forward, err := portforward.New(dialer, []string{"0:8080"}, stop, ready, io.Discard, io.Discard)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- forward.ForwardPorts() }()
	<-ready
	ports, err := forward.GetPorts()
	require.NoError(t, err)
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local))
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	_ = resp.Body.Close()
	close(stop)
	require.NoError(t, <-done)
}
