package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

const patience = 90 * time.Second

// soon waits until holds returns true; the machine may be busy.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, patience, 50*time.Millisecond, what)
}

// A real server in place of package apitest; it restricts a node to the permissions of
// nodes.
func TestIntegrationANodeAndTheServerOfACluster(t *testing.T) {
	lab.Need(t, "kubernetes")
	plane := lab.NewControlPlane(t, lab.ControlPlaneConfig{})
	ctx := t.Context()
	admin, err := client.Connect(client.Config{Kubeconfig: plane.Kubeconfig, QPS: -1})
	require.NoError(t, err)
	conn, err := client.Connect(client.Config{Kubeconfig: plane.NodeKubeconfig(nodeName)})
	require.NoError(t, err)
	node, err := conn.API.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.API.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	soon(t, "the namespace has its service account", func() bool {
		_, err := admin.API.CoreV1().ServiceAccounts("prod").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	for _, secret := range []string{"db", "other"} {
		_, err = admin.API.CoreV1().Secrets("prod").Create(ctx, newSecret(secret, "one"), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	create := func() *v1.Pod {
		pod := userOf("", "db")
		pod.Name, pod.UID, pod.Status, pod.ManagedFields = "web", "", v1.PodStatus{}, nil
		pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}}
		made, err := admin.API.CoreV1().Pods("prod").Create(ctx, pod, metav1.CreateOptions{})
		require.NoError(t, err)
		return made
	}

	events, err := client.NewEvents(client.EventsConfig{Client: conn.Events, NodeName: nodeName})
	require.NoError(t, err)
	stopsWithin(t, patience, events.Run)
	pods, err := client.NewPods(client.PodsConfig{Client: conn.API, NodeName: nodeName})
	require.NoError(t, err)
	took := new(taker)
	stopsWithin(t, patience, func(ctx context.Context) error { return pods.Run(ctx, took.set) })
	calls := make(chan client.StatusCall, 1000)
	statuses, err := client.NewStatuses(client.StatusesConfig{
		Client: conn.API, Pods: pods, Record: events.Record,
		Hooks: client.StatusesHooks{Called: func(c client.StatusCall) { calls <- c }},
	})
	require.NoError(t, err)
	stopsWithin(t, patience, statuses.Run)
	changed := make(chan string, 100)
	objects, err := client.NewObjects(client.ObjectsConfig{
		Client: conn.API, Wait: patience, Changed: func(kind, namespace, name string) { changed <- kind + " " + namespace + "/" + name },
	})
	require.NoError(t, err)
	stopsWithin(t, patience, objects.Run)
	get := func(name string) *v1.Pod {
		pod, err := admin.API.CoreV1().Pods("prod").Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		require.NoError(t, err)
		return pod
	}

	// A pod is received, its status is written, and other writers' fields stay.
	web := create()
	soon(t, "the pod is desired", func() bool { return pods.Pod(web.UID) != nil })
	gate := []byte(`{"status":{"conditions":[{"type":"example.com/gate","status":"True"}]}}`)
	_, err = admin.API.CoreV1().Pods("prod").Patch(ctx, "web", types.StrategicMergePatchType, gate, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	require.NoError(t, statuses.UpdatePodStatus(ctx, web, runningStatus()))
	got := get("web")
	assert.Equal(t, v1.PodRunning, got.Status.Phase)
	assert.True(t, status.IsReady(&got.Status))
	assert.NotNil(t, status.Condition(got.Status.Conditions, "example.com/gate"))
	assert.Equal(t, "patch", (<-calls).Verb)
	assert.Empty(t, calls, "one call")

	// A change by another client can be reverted.
	_, err = admin.API.CoreV1().Pods("prod").Patch(ctx, "web", types.StrategicMergePatchType, []byte(`{"status":{"reason":"Meddled"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	soon(t, "the change is seen", func() bool { return pods.Pod(web.UID).Status.Reason == "Meddled" })
	require.NoError(t, statuses.UpdatePodStatus(ctx, pods.Pod(web.UID), runningStatus())) // as after status.Manager.Reconcile
	assert.Empty(t, get("web").Status.Reason)

	// Secrets of the node's pods may be watched, and those of others not.
	objects.Register(web)
	secret, err := objects.Secret(ctx, "prod", "db")
	require.NoError(t, err)
	assert.Equal(t, "one", string(secret.Data["key"]))
	_, err = admin.API.CoreV1().Secrets("prod").Update(ctx, newSecret("db", "two"), metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Equal(t, "Secret prod/db", <-changed)
	_, err = objects.Secret(ctx, "prod", "other")
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	services, ok := objects.Services(ctx, "prod")
	assert.True(t, ok)
	assert.Equal(t, []string{"default/kubernetes"}, names(services))
	token, err := objects.Token(ctx, "prod", "default", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "web", UID: web.UID},
	}})
	require.NoError(t, err)
	assert.NotEmpty(t, token.Status.Token)
	_, err = objects.RuntimeClass("none")
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	// The same name again: the status of the first pod is not applied to the second.
	require.NoError(t, admin.API.CoreV1().Pods("prod").Delete(ctx, "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	second := create()
	require.NoError(t, statuses.UpdatePodStatus(ctx, web, failedStatus()))
	require.NoError(t, statuses.DeletePod(ctx, web))
	require.NotNil(t, get("web"))
	assert.Equal(t, v1.PodPending, get("web").Status.Phase)
	soon(t, "the second pod is desired", func() bool { return pods.Pod(second.UID) != nil && pods.Pod(web.UID) == nil })

	// The server is away while things change.
	plane.StopAPI()
	err = statuses.UpdatePodStatus(ctx, second, runningStatus())
	require.Error(t, err)
	assert.NotNil(t, pods.Pod(second.UID), "the cached pod stays")
	plane.StartAPI()
	soon(t, "the status arrives", func() bool { return statuses.UpdatePodStatus(ctx, second, runningStatus()) == nil })
	assert.Equal(t, v1.PodRunning, get("web").Status.Phase)
	require.NoError(t, admin.API.CoreV1().Pods("prod").Delete(ctx, "web", metav1.DeleteOptions{}))
	soon(t, "the deletion is seen", func() bool {
		pod := pods.Pod(second.UID)
		return pod != nil && pod.DeletionTimestamp != nil
	})
	require.NoError(t, statuses.UpdatePodStatus(ctx, pods.Pod(second.UID), failedStatus()))
	require.NoError(t, statuses.DeletePod(ctx, second))
	assert.Nil(t, get("web"))

	// A static pod shows.
	mirrors, err := client.NewMirrors(client.MirrorsConfig{Client: conn.API, Node: func() (metav1.OwnerReference, bool) {
		return metav1.OwnerReference{Name: nodeName, UID: node.UID}, true
	}})
	require.NoError(t, err)
	static := newStatic("h1")
	static.Spec.EnableServiceLinks = nil
	require.NoError(t, statuses.UpdatePodStatus(ctx, static, runningStatus()))
	made := asMade(t, static)
	made.OwnerReferences[0].UID = node.UID
	require.NoError(t, mirrors.CreateMirror(ctx, made))
	require.NoError(t, mirrors.CreateMirror(ctx, made), "it exists already")
	soon(t, "the mirror pod has the status", func() bool { return get(static.Name).Status.Phase == v1.PodRunning })
	assert.Equal(t, "h1", get(static.Name).Annotations[v1.MirrorPodAnnotationKey])
	require.NoError(t, mirrors.DeleteMirror(ctx, get(static.Name)))
	soon(t, "the mirror pod is gone", func() bool { return get(static.Name) == nil })

	// And the events can be read.
	events.Record(runtime.Event{Object: runtime.PodRef(second), Type: v1.EventTypeNormal, Reason: "Killing", Message: "Stopping container main"})
	events.Record(runtime.Event{Object: runtime.PodRef(second), Type: v1.EventTypeNormal, Reason: "Killing", Message: "Stopping container main"})
	soon(t, "the event is counted", func() bool {
		list, err := admin.API.CoreV1().Events("prod").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(second.UID)})
		return err == nil && len(list.Items) == 1 && list.Items[0].Count == 2 && list.Items[0].Source.Host == nodeName
	})
}
