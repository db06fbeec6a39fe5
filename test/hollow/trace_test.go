package hollow

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/trace"
	clustertrace "github.com/kubeparts/kubeparts/sim/cluster/trace"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// Forty minutes of a trace take ten seconds on a real API server, in a namespace that the trace creates.
func TestIntegrationATraceIsPlayedOnACluster(t *testing.T) {
	control := lab.NewControlPlane(t, lab.ControlPlaneConfig{})
	config, err := clientcmd.BuildConfigFromFlags("", control.Kubeconfig)
	require.NoError(t, err)
	config.QPS = -1
	nodes, err := fakenode.New(rest.CopyConfig(config), fakenode.Config{Nodes: fakenode.Many(3, fakenode.Node{}), NoScheduler: true})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- nodes.Run(ctx) }()
	defer func() { stop(); assert.NoError(t, <-stopped) }()

	pods, err := clustertrace.ReadPods(strings.NewReader("name,arrival_s,duration_s,exit_code,restart_policy,recreate,priority,memory_mib\n" +
		"job,0,1,,,,1000,128\nfails,0,1,3,,,-5,\nreplaced,240,,,,true,,\nagain,240,1,,OnFailure,true,1000,\n"))
	require.NoError(t, err)
	history, err := trace.OfPods(pods, "prod", fakenode.Annotation)
	require.NoError(t, err)
	web := func(replicas int64) *unstructured.Unstructured {
		labels := map[string]any{"app": "web"}
		container := map[string]any{"name": "main", "image": "web", "ports": []any{map[string]any{"containerPort": int64(80)}}}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{
				"namespace": "prod", "name": "web", "uid": "of-another-cluster", "resourceVersion": "77", "generation": int64(5),
				"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"}},
			},
			"spec": map[string]any{
				"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{"metadata": map[string]any{"labels": labels, "creationTimestamp": nil}, "spec": map[string]any{"automountServiceAccountToken": false, "serviceAccountName": "of-another-cluster", "containers": []any{container}}},
			},
			"status": map[string]any{"replicas": int64(99)},
		}}
	}
	history.Events = append(history.Events,
		trace.Event{At: 8 * time.Minute, Applied: []*unstructured.Unstructured{web(2)}},
		trace.Event{At: 40 * time.Minute, Applied: []*unstructured.Unstructured{web(4)}},
	)
	var late time.Duration
	player, err := trace.NewPlayer(config, trace.Config{Speed: 240, Hooks: trace.Hooks{Played: func(p trace.Played) { late = max(late, p.Late) }}})
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, player.Play(t.Context(), history))
	t.Logf("%v of the trace in %v, at most %v late", history.Length(), time.Since(began).Round(time.Millisecond), late.Round(time.Millisecond))
	assert.GreaterOrEqual(t, time.Since(began), 10*time.Second)

	api, _, err := labenv.NewClient(control.Kubeconfig)
	require.NoError(t, err)
	is := map[string]int{}
	settled := func() bool {
		list, err := api.CoreV1().Pods("prod").List(t.Context(), metav1.ListOptions{})
		clear(is)
		for i := range list.Items {
			p := &list.Items[i]
			name, _, _ := strings.Cut(p.Name, "-")
			is[name+" "+string(p.Status.Phase)]++
		}
		return err == nil && is["web Running"] == 4 && is["again Succeeded"] == 1
	}
	require.Eventually(t, settled, 90*time.Second, 100*time.Millisecond, "%v", is)
	assert.Equal(t, map[string]int{
		"job " + string(v1.PodSucceeded): 1, "fails " + string(v1.PodFailed): 1, "replaced " + string(v1.PodRunning): 1,
		"again " + string(v1.PodSucceeded): 1, "web " + string(v1.PodRunning): 4,
	}, is)
	job, err := api.CoreV1().Pods("prod").Get(t.Context(), "job", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, int32(1000), *job.Spec.Priority)

	// What the trace deletes is deleted with its dependents.
	require.NoError(t, player.Play(t.Context(), &trace.Trace{Events: []trace.Event{{Deleted: []*unstructured.Unstructured{web(0)}}}}))
	require.Eventually(t, func() bool { settled(); return is["web Running"] == 0 }, 90*time.Second, 100*time.Millisecond, "%v", is)
}
