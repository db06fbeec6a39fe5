package provider_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// asyncProvider is node.PodLifecycleHandler and node.PodNotifier of virtual-kubelet.
type asyncProvider interface {
	CreatePod(ctx context.Context, pod *v1.Pod) error
	UpdatePod(ctx context.Context, pod *v1.Pod) error
	DeletePod(ctx context.Context, pod *v1.Pod) error
	GetPod(ctx context.Context, namespace, name string) (*v1.Pod, error)
	GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error)
	GetPods(context.Context) ([]*v1.Pod, error)
	NotifyPods(context.Context, func(*v1.Pod))
}

// A podController calls a provider in the situations in which virtual-kubelet's
// node.PodController does, including its peculiarities: pods are identified by name, an
// object is deleted when its grace period is over, and a deletion that a list reveals is
// discarded. It is written from that controller's documented behavior: the module itself
// cannot be fetched where these tests run.
type podController struct {
	client   kubernetes.Interface
	provider asyncProvider
	pods     corelisters.PodLister
	queue    workqueue.TypedRateLimitingInterface[job]

	mu       sync.Mutex
	reported map[string]*v1.Pod // by key, as the provider reported them last
	handled  map[string]*v1.Pod // by key, as they were passed to the provider last
}

// A job is one call: "sync" and "status" of a key, "remove" of an object with a UID.
type job struct {
	kind, key string
	uid       types.UID
}

// control runs a podController until stop is called.
func control(t *testing.T, client kubernetes.Interface, provider asyncProvider) (stop func()) {
	factory := informers.NewSharedInformerFactory(client, 0)
	c := &podController{
		client: client, provider: provider, pods: factory.Core().V1().Pods().Lister(),
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[job]()),
		reported: map[string]*v1.Pod{}, handled: map[string]*v1.Pod{},
	}
	ctx, cancel := context.WithCancel(t.Context())
	provider.NotifyPods(ctx, c.notified)
	informer := factory.Core().V1().Pods().Informer()
	factory.Start(ctx.Done())
	require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	changed := func(pod any) { c.queue.Add(job{kind: "sync", key: keyOf(pod.(*v1.Pod))}) }
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, pod any) { changed(pod) },
		DeleteFunc: func(pod any) {
			if pod, ok := pod.(*v1.Pod); ok {
				c.mu.Lock()
				delete(c.handled, keyOf(pod))
				delete(c.reported, keyOf(pod))
				c.mu.Unlock()
				changed(pod)
			}
		},
	})
	require.NoError(t, err)
	require.NoError(t, c.deleteDangling(ctx))
	var workers sync.WaitGroup
	workers.Go(func() {
		for c.work(ctx, t) {
		}
	})
	return func() {
		cancel()
		c.queue.ShutDown()
		workers.Wait()
		factory.Shutdown()
	}
}

func keyOf(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

func (c *podController) work(ctx context.Context, t *testing.T) bool {
	j, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(j)
	var err error
	switch j.kind {
	case "sync":
		err = c.sync(ctx, j.key)
	case "status":
		err = c.status(ctx, j.key)
	case "remove":
		err = c.remove(ctx, j)
	}
	if err != nil && ctx.Err() == nil {
		t.Logf("%v: %v", j, err)
		c.queue.AddRateLimited(j)
	} else {
		c.queue.Forget(j)
	}
	return true
}

// notified takes a pod from the provider.
func (c *podController) notified(pod *v1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if equality.Semantic.DeepEqual(c.reported[keyOf(pod)], pod) {
		return
	}
	c.reported[keyOf(pod)] = pod.DeepCopy()
	c.queue.Add(job{kind: "status", key: keyOf(pod)})
}

func (c *podController) get(key string) (*v1.Pod, error) {
	namespace, name, _ := strings.Cut(key, "/")
	return c.pods.Pods(namespace).Get(name)
}

func isNotFound(err error) bool {
	known, ok := errors.AsType[interface {
		error
		NotFound() bool
	}](err)
	return ok && known.NotFound()
}

// sync passes the state of an object in the API to the provider.
func (c *podController) sync(ctx context.Context, key string) error {
	pod, err := c.get(key)
	if apierrors.IsNotFound(err) {
		namespace, name, _ := strings.Cut(key, "/")
		if pod, err = c.provider.GetPod(ctx, namespace, name); err == nil {
			err = c.provider.DeletePod(ctx, pod)
		}
		if isNotFound(err) {
			return nil
		}
		return err
	}
	if pod.DeletionTimestamp != nil && !running(&pod.Status) {
		c.queue.Add(job{"remove", key, pod.UID})
		return nil
	}
	c.mu.Lock()
	before := c.handled[key]
	c.mu.Unlock()
	if before != nil && equality.Semantic.DeepEqual(before.Spec, pod.Spec) && equality.Semantic.DeepEqual(before.Labels, pod.Labels) &&
		before.DeletionTimestamp.Equal(pod.DeletionTimestamp) {
		return nil
	}
	switch {
	case pod.DeletionTimestamp != nil:
		if err := c.provider.DeletePod(ctx, pod.DeepCopy()); err != nil && !isNotFound(err) {
			return err
		}
		c.queue.AddAfter(job{"remove", key, pod.UID}, time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second)
	case pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded:
		return nil
	default:
		if err := c.createOrUpdate(ctx, pod.DeepCopy()); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handled[key] = pod
	return nil
}

func (c *podController) createOrUpdate(ctx context.Context, pod *v1.Pod) error {
	there, _ := c.provider.GetPod(ctx, pod.Namespace, pod.Name)
	switch {
	case there == nil:
		return c.provider.CreatePod(ctx, pod)
	case !equality.Semantic.DeepEqual(there.Spec.Containers, pod.Spec.Containers) || !equality.Semantic.DeepEqual(there.Labels, pod.Labels):
		return c.provider.UpdatePod(ctx, pod)
	}
	return nil
}

// running reports whether a container is neither waiting nor terminated.
func running(status *v1.PodStatus) bool {
	for _, c := range status.ContainerStatuses {
		if c.State.Terminated == nil && c.State.Waiting == nil {
			return true
		}
	}
	return false
}

// status writes what the provider reported into the API.
func (c *podController) status(ctx context.Context, key string) error {
	object, err := c.get(key)
	if err != nil || object.Status.Phase == v1.PodFailed || object.Status.Phase == v1.PodSucceeded {
		return nil
	}
	c.mu.Lock()
	reported := c.reported[key].DeepCopy()
	c.mu.Unlock()
	if reported == nil {
		return nil
	}
	reported.ResourceVersion = ""
	_, err = c.client.CoreV1().Pods(reported.Namespace).UpdateStatus(ctx, reported, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// remove deletes an object whose pod is not running or has exceeded its grace period.
func (c *podController) remove(ctx context.Context, j job) error {
	pod, err := c.get(j.key)
	if err != nil || pod.UID != j.uid {
		return nil
	}
	err = c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(j.uid)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// deleteDangling deletes the pods of the provider that are not in the API, once.
func (c *podController) deleteDangling(ctx context.Context) error {
	objects, err := c.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, pod := range objects {
		names[keyOf(pod)] = true
	}
	pods, err := c.provider.GetPods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if !names[keyOf(pod)] {
			if err := c.provider.DeletePod(ctx, pod); err != nil && !isNotFound(err) {
				return err
			}
		}
	}
	return nil
}
