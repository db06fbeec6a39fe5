// Package provider_test runs package kube/provider under virtual-kubelet's controllers, between
// an API server and a runtime, both in memory and in virtual time.
package provider_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// A cluster is an API server, a client of it, and the runtime of one virtual node.
type cluster struct {
	t      *testing.T
	api    *apitest.Server
	client kubernetes.Interface
	rt     *runtimetest.Runtime
}

func inCluster(t *testing.T, test func(t *testing.T, c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, api: new(apitest.Server), rt: new(runtimetest.Runtime)}
		config := c.api.RESTConfig()
		config.QPS = -1
		var err error
		c.client, err = kubernetes.NewForConfig(config)
		require.NoError(t, err)
		test(t, c)
	})
}

// start runs a provider under the controllers of virtual-kubelet.
func (c *cluster) start() (p *provider.Provider, stop func()) {
	return c.startWith(provider.Config{Runtime: c.rt}, false)
}

// startWith is start with this configuration; with resolves, virtual-kubelet does not resolve the environment of pods.
func (c *cluster) startWith(cfg provider.Config, resolves bool) (p *provider.Provider, stop func()) {
	cfg.NodeName, cfg.HostIPs = nodeName, func() []string { return []string{"192.0.2.1"} }
	p, err := provider.New(cfg)
	require.NoError(c.t, err)
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stopController := control(c.t, c.client, p, resolves)
	return p, func() {
		stopController()
		cancel()
		require.NoError(c.t, <-done)
	}
}

func (c *cluster) create(name, image string) *v1.Pod {
	pod, err := c.client.CoreV1().Pods("default").Create(c.t.Context(), &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1.PodSpec{
			NodeName: nodeName, RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []v1.Container{{Name: "app", Image: image}},
		},
	}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	return pod
}

func (c *cluster) delete(name string) {
	require.NoError(c.t, c.client.CoreV1().Pods("default").Delete(c.t.Context(), name, metav1.DeleteOptions{}))
}

// after returns the object of a pod after a time; nil if it does not exist.
func (c *cluster) after(d time.Duration, name string) *v1.Pod {
	time.Sleep(d)
	synctest.Wait()
	pod, err := c.client.CoreV1().Pods("default").Get(c.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(c.t, err)
	return pod
}

// containers returns the running containers of a pod.
func (c *cluster) containers(uid types.UID) (ids []string) {
	pods, err := c.rt.Pods(c.t.Context())
	require.NoError(c.t, err)
	for _, pod := range pods {
		for _, one := range pod.Containers {
			if pod.UID == uid && one.State == runtime.ContainerRunning {
				ids = append(ids, one.ID)
			}
		}
	}
	return ids
}

func TestAPodRunsIsUpdatedAndDeleted(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.rt.Behave("web:1", fake.Behavior{StopDelay: 10 * time.Second})
		c.rt.Behave("web:2", fake.Behavior{StopDelay: 10 * time.Second})
		_, stop := c.start()
		defer stop()
		created := c.create("web", "web:1")
		pod := c.after(2*time.Second, "web")
		assert.Equal(t, v1.PodRunning, pod.Status.Phase)
		assert.True(t, status.IsReady(&pod.Status))
		assert.Equal(t, "192.0.2.1", pod.Status.HostIP)
		assert.NotEmpty(t, pod.Status.PodIP)
		assert.Equal(t, c.containers(created.UID), []string{pod.Status.ContainerStatuses[0].ContainerID})

		pod.Spec.Containers[0].Image = "web:2"
		_, err := c.client.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err)
		pod = c.after(30*time.Second, "web")
		assert.Equal(t, "web:2", pod.Status.ContainerStatuses[0].Image)
		assert.EqualValues(t, 1, pod.Status.ContainerStatuses[0].RestartCount)
		assert.True(t, status.IsReady(&pod.Status))

		c.delete("web")
		pod = c.after(5*time.Second, "web")
		require.NotNil(t, pod, "its grace period is not over")
		assert.NotNil(t, pod.Status.ContainerStatuses[0].State.Running)
		assert.Len(t, c.containers(created.UID), 1)
		pod = c.after(10*time.Second, "web")
		assert.Empty(t, c.containers(created.UID))
		require.NotNil(t, pod, "virtual-kubelet deletes the object after the grace period")
		ended := pod.Status.ContainerStatuses[0].State.Terminated
		require.NotNil(t, ended)
		assert.EqualValues(t, 143, ended.ExitCode)
		assert.Nil(t, c.after(16*time.Second, "web"))
		statuses := c.api.Calls("update", "pods/status")
		assert.Less(t, len(statuses), 10)
	})
}

func TestACrashIsCountedAsRestart(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.rt.Behave("web:1", fake.Behavior{Exit: &fake.Exit{After: 5 * time.Second, Code: 3, Crashes: 2}})
		_, stop := c.start()
		defer stop()
		c.create("web", "web:1")
		pod := c.after(2*time.Minute, "web")
		assert.Equal(t, v1.PodRunning, pod.Status.Phase)
		assert.EqualValues(t, 2, pod.Status.ContainerStatuses[0].RestartCount)
		last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated
		require.NotNil(t, last)
		assert.EqualValues(t, 3, last.ExitCode)
	})
}

func TestAFinishedPodIsReported(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.rt.Behave("job:1", fake.Behavior{Exit: &fake.Exit{After: 5 * time.Second}})
		_, stop := c.start()
		defer stop()
		_, err := c.client.CoreV1().Pods("default").Create(t.Context(), &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job"},
			Spec: v1.PodSpec{
				NodeName: nodeName, RestartPolicy: v1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(30)),
				Containers: []v1.Container{{Name: "app", Image: "job:1"}},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		pod := c.after(time.Minute, "job")
		assert.Equal(t, v1.PodSucceeded, pod.Status.Phase)
		assert.Equal(t, "Completed", pod.Status.ContainerStatuses[0].State.Terminated.Reason)
		c.delete("job")
		assert.Nil(t, c.after(time.Second, "job"))
	})
}

func TestAProcessThatStartsAgainAdoptsThePods(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		_, stop := c.start()
		web, lost, leaving := c.create("web", "web:1"), c.create("lost", "web:1"), c.create("leaving", "web:1")
		before := c.after(5*time.Second, "web")
		stop()
		c.api.Remove("pods", "default", "lost") // while no process watches
		c.delete("leaving")

		_, stop = c.start()
		defer stop()
		after := c.after(20*time.Second, "web")
		assert.Equal(t, before.Status.ContainerStatuses, after.Status.ContainerStatuses)
		assert.Equal(t, c.containers(web.UID), []string{after.Status.ContainerStatuses[0].ContainerID})
		assert.Empty(t, c.containers(lost.UID), "it is not in the API")
		assert.Empty(t, c.containers(leaving.UID))
		assert.Nil(t, c.after(11*time.Second, "leaving"), "after its grace period")

		c.create("new", "web:1")
		assert.Equal(t, v1.PodRunning, c.after(5*time.Second, "new").Status.Phase)
	})
}

func TestAPodIsRecreatedWhileNoProcessRuns(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		_, stop := c.start()
		old := c.create("web", "web:1")
		c.after(5*time.Second, "web")
		stop()
		c.api.Remove("pods", "default", "web")
		next := c.create("web", "web:1")

		_, stop = c.start()
		defer stop()
		pod := c.after(5*time.Second, "web")
		assert.Equal(t, next.UID, pod.UID)
		assert.Equal(t, v1.PodRunning, pod.Status.Phase)
		assert.Empty(t, c.containers(old.UID))
	})
}

// A StatefulSet creates the next pod with the same name and spec as soon as the object of
// the last one is gone, which virtual-kubelet deletes when the grace period is over.
func TestAPodIsRecreatedUnderItsNameWhileTheOldOneTerminates(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.rt.Behave("web:1", fake.Behavior{StopDelay: 10 * time.Second})
		_, stop := c.start()
		defer stop()
		old := c.create("web", "web:1")
		c.after(5*time.Second, "web")
		c.rt.Inject(func(call fake.Call) fake.Fault { // terminating takes longer than the grace period
			if call.Method == "KillPod" && call.Pod == old.UID {
				return fake.Fault{Delay: 20 * time.Second}
			}
			return fake.Fault{}
		})
		require.NoError(t, c.client.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}))
		require.Nil(t, c.after(3*time.Second, "web"))
		require.Len(t, c.containers(old.UID), 1)
		next := c.create("web", "web:1")
		pod := c.after(5*time.Second, "web")
		assert.Equal(t, next.UID, pod.UID)
		assert.Equal(t, v1.PodRunning, pod.Status.Phase)
		assert.Equal(t, c.containers(next.UID), []string{pod.Status.ContainerStatuses[0].ContainerID})
		pod = c.after(time.Minute, "web")
		assert.Empty(t, c.containers(old.UID))
		assert.True(t, status.IsReady(&pod.Status))
		assert.Zero(t, pod.Status.ContainerStatuses[0].RestartCount)
	})
}

// virtual-kubelet receives the deletion and the new object at once and synchronizes the name
// once, with the new object.
func TestAPodIsRecreatedBeforeItsDeletionIsProcessed(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		_, stop := c.start()
		defer stop()
		old := c.create("web", "web:1")
		c.after(5*time.Second, "web")
		c.api.Remove("pods", "default", "web")
		next := c.create("web", "web:1")
		pod := c.after(time.Minute, "web")
		assert.Equal(t, next.UID, pod.UID)
		assert.Equal(t, v1.PodRunning, pod.Status.Phase)
		assert.Empty(t, c.containers(old.UID))
		assert.Equal(t, c.containers(next.UID), []string{pod.Status.ContainerStatuses[0].ContainerID})
		assert.Empty(t, pod.Annotations)
	})
}

func TestAPodThatIsRemovedFromTheAPIIsTerminated(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.rt.Backoff = 10 * time.Second
		p, stop := c.start()
		defer stop()
		c.rt.Behave("crash:1", fake.Behavior{Exit: &fake.Exit{After: time.Second, Code: 1}})
		web, crashing := c.create("web", "web:1"), c.create("crashing", "crash:1")
		require.Equal(t, v1.PodRunning, c.after(5*time.Second, "web").Status.Phase)
		require.NotNil(t, c.after(30*time.Second, "crashing").Status.ContainerStatuses[0].State.Waiting)
		require.NoError(t, c.client.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
		c.delete("crashing")
		assert.Nil(t, c.after(time.Second, "crashing"), "virtual-kubelet does not wait for a pod without a running container")
		time.Sleep(time.Minute)
		assert.Empty(t, c.containers(web.UID))
		assert.Empty(t, c.containers(crashing.UID))
		pods, err := p.GetPods(t.Context())
		require.NoError(t, err)
		assert.Empty(t, pods)
	})
}

// virtual-kubelet resolves the environment before it compares pods.
func TestTheEnvironmentIsResolvedAndALabelIsAnUpdate(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.api.Put(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"color": "red"}})
		p, stop := c.start()
		defer stop()
		created, err := c.client.CoreV1().Pods("default").Create(t.Context(), &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec: v1.PodSpec{
				NodeName: nodeName, RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)),
				Containers: []v1.Container{{Name: "app", Image: "web:1", Env: []v1.EnvVar{{Name: "COLOR", ValueFrom: &v1.EnvVarSource{
					ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}, Key: "color"},
				}}}}},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		pod := c.after(5*time.Second, "web")
		require.Equal(t, v1.PodRunning, pod.Status.Phase)
		container := pod.Status.ContainerStatuses[0].ContainerID
		passed, err := p.GetPod(t.Context(), "default", "web")
		require.NoError(t, err)
		assert.Contains(t, passed.Spec.Containers[0].Env, v1.EnvVar{Name: "COLOR", Value: "red"})

		pod.Labels = map[string]string{"tier": "front"}
		_, err = c.client.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err)
		c.after(5*time.Minute, "web") // several resyncs
		passed, err = p.GetPod(t.Context(), "default", "web")
		require.NoError(t, err)
		assert.Equal(t, "front", passed.Labels["tier"])
		assert.Equal(t, []string{container}, c.containers(created.UID), "it was not restarted")
	})
}

func TestUnknownPodsAreNotFound(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		p, stop := c.start()
		defer stop()
		isNotFound := func(err error) { assert.True(t, errdefs.IsNotFound(err), "%v", err) }
		_, err := p.GetPod(t.Context(), "default", "web")
		isNotFound(err)
		_, err = p.GetPodStatus(t.Context(), "default", "web")
		isNotFound(err)
		isNotFound(p.DeletePod(t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "unknown"}}))
		isNotFound(p.Exec(t.Context(), "default", "web", "app", []string{"date"}, runtime.Streams{}))
		c.create("web", "web:1")
		c.after(time.Second, "web")
		isNotFound(p.Exec(t.Context(), "default", "web", "other", []string{"date"}, runtime.Streams{}))
	})
}

func TestTheNodeIsRegistered(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		_, stop := c.start()
		defer stop()
		time.Sleep(30 * time.Second)
		node, err := c.client.CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, v1.ConditionTrue, node.Status.Conditions[0].Status)
		lease, err := c.client.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(t.Context(), nodeName, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Less(t, time.Since(lease.Spec.RenewTime.Time), 20*time.Second)
	})
}
