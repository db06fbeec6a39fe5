package envtest_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// A Controller manages teams. A team is a ConfigMap whose data specifies the number of pods
// ("replicas") and their image ("image"); the controller creates the pods NAME-0, NAME-1, …
// and records how many are ready ("ready"). A terminated pod is replaced. A new image is
// rolled out one pod at a time, while all others are ready. A pod is created when its
// predecessor of the same name has been deleted.
type Controller struct {
	api   kubernetes.Interface
	teams corelisters.ConfigMapLister
	pods  corelisters.PodLister
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
	start func(ctx context.Context) error
}

// New returns a controller for the teams of all namespaces.
func New(api kubernetes.Interface) (*Controller, error) {
	factory := informers.NewSharedInformerFactory(api, 0)
	teams, pods := factory.Core().V1().ConfigMaps(), factory.Core().V1().Pods()
	c := &Controller{
		api: api, teams: teams.Lister(), pods: pods.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	for informer, team := range map[cache.SharedIndexInformer]func(metav1.Object) string{
		teams.Informer(): metav1.Object.GetName,
		pods.Informer(): func(pod metav1.Object) string {
			if of := metav1.GetControllerOf(pod); of != nil && of.Kind == "ConfigMap" {
				return of.Name
			}
			return ""
		},
	} {
		changed := func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if o, ok := o.(metav1.Object); ok && team(o) != "" {
				c.queue.Add(cache.ObjectName{Namespace: o.GetNamespace(), Name: team(o)})
			}
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: changed,
		}); err != nil {
			return nil, fmt.Errorf("team: %w", err)
		}
	}
	c.start = func(ctx context.Context) error {
		factory.Start(ctx.Done())
		context.AfterFunc(ctx, func() {
			factory.Shutdown()
			c.queue.ShutDown()
		})
		for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced && ctx.Err() == nil {
				return fmt.Errorf("team: list %v: cache not synced", kind)
			}
		}
		return nil
	}
	return c, nil
}

// Run manages the teams until ctx is done.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	for {
		team, over := c.queue.Get()
		if over {
			return nil
		}
		if err := c.reconcile(ctx, team); err != nil && ctx.Err() == nil {
			c.queue.AddRateLimited(team)
		} else {
			c.queue.Forget(team)
		}
		c.queue.Done(team)
	}
}

// reconcile takes the next step for a team. Its effect is a change that triggers the
// following one.
func (c *Controller) reconcile(ctx context.Context, name cache.ObjectName) error {
	team, err := c.teams.ConfigMaps(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil // the garbage collector deletes its pods
	}
	if err != nil {
		return err
	}
	replicas, err := strconv.Atoi(team.Data["replicas"])
	if err != nil {
		return nil // not a team
	}
	pods := c.api.CoreV1().Pods(team.Namespace)
	var old *v1.Pod
	complete, up := true, 0 // whether all members are ready, and how many are
	for i := range replicas {
		pod, err := c.pods.Pods(team.Namespace).Get(member(team, i))
		switch {
		case apierrors.IsNotFound(err):
			_, err = pods.Create(ctx, newMember(team, i), metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			complete = false
			continue
		case err != nil:
			return err
		case pod.DeletionTimestamp != nil:
			complete = false // replaced when it has been deleted
			continue
		case pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded:
			complete = false
			if err := remove(ctx, c.api, pod); err != nil {
				return err
			}
			continue
		}
		if pod.Spec.Containers[0].Image != team.Data["image"] {
			old = pod
		}
		if ready(pod) {
			up++
		} else {
			complete = false
		}
	}
	for i := replicas; ; i++ { // the team has been scaled down
		pod, err := c.pods.Pods(team.Namespace).Get(member(team, i))
		if err != nil {
			break
		}
		if err := remove(ctx, c.api, pod); err != nil {
			return err
		}
	}
	if complete && old != nil {
		return remove(ctx, c.api, old)
	}
	if count := fmt.Sprintf("%d/%d", up, replicas); team.Data["ready"] != count {
		team = team.DeepCopy()
		team.Data["ready"] = count
		_, err = c.api.CoreV1().ConfigMaps(team.Namespace).Update(ctx, team, metav1.UpdateOptions{})
	}
	return err
}

// remove deletes a pod with its own grace period, once.
func remove(ctx context.Context, api kubernetes.Interface, pod *v1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	err := api.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // already deleted, possibly replaced
	}
	return err
}

func member(team *v1.ConfigMap, i int) string { return fmt.Sprintf("%s-%d", team.Name, i) }

func newMember(team *v1.ConfigMap, i int) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: member(team, i), Namespace: team.Namespace, Annotations: team.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(team, v1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Spec: v1.PodSpec{
			RestartPolicy:                 v1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64(grace / time.Second)),
			Containers:                    []v1.Container{{Name: "main", Image: team.Data["image"]}},
		},
	}
}

// grace is the termination grace period of members.
const grace = 3 * time.Second

func ready(pod *v1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
