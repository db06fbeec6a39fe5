package envtest

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

// A Controller keeps teams: NAME-0, NAME-1 and so on are the pods of a ConfigMap,
// whose data says how many ("replicas") and of which image ("image"), and is told
// how many are ready ("ready"). A pod that has ended is replaced. A new image is
// rolled out pod by pod: the next one goes when all others are ready. A pod takes a
// predecessor's place when that is gone.
type Controller struct {
	api   kubernetes.Interface
	teams corelisters.ConfigMapLister
	pods  corelisters.PodLister
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
	start func(ctx context.Context) error
}

// New returns a controller of the teams of all namespaces.
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
				return fmt.Errorf("team: %v cannot be read", kind)
			}
		}
		return nil
	}
	return c, nil
}

// Run keeps the teams until ctx ends.
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

// reconcile does the next thing for a team. What it leads to comes back as a change.
func (c *Controller) reconcile(ctx context.Context, name cache.ObjectName) error {
	team, err := c.teams.ConfigMaps(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil // its pods are the garbage collector's
	}
	if err != nil {
		return err
	}
	replicas, err := strconv.Atoi(team.Data["replicas"])
	if err != nil {
		return nil // it is no team
	}
	pods := c.api.CoreV1().Pods(team.Namespace)
	var old *v1.Pod
	all, up := true, 0 // whether all members are there and ready, and how many are
	for i := range replicas {
		pod, err := c.pods.Pods(team.Namespace).Get(member(team, i))
		switch {
		case apierrors.IsNotFound(err):
			_, err = pods.Create(ctx, newMember(team, i), metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			all = false
			continue
		case err != nil:
			return err
		case pod.DeletionTimestamp != nil:
			all = false // its place is taken when it is gone
			continue
		case pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded:
			all = false
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
			all = false
		}
	}
	for i := replicas; ; i++ { // a team that has become smaller
		pod, err := c.pods.Pods(team.Namespace).Get(member(team, i))
		if err != nil {
			break
		}
		if err := remove(ctx, c.api, pod); err != nil {
			return err
		}
	}
	if all && old != nil {
		return remove(ctx, c.api, old)
	}
	if said := fmt.Sprintf("%d/%d", up, replicas); team.Data["ready"] != said {
		team = team.DeepCopy()
		team.Data["ready"] = said
		_, err = c.api.CoreV1().ConfigMaps(team.Namespace).Update(ctx, team, metav1.UpdateOptions{})
	}
	return err
}

// remove deletes a pod, with the grace that it asks for, once.
func remove(ctx context.Context, api kubernetes.Interface, pod *v1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	err := api.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, and perhaps there is another one
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

// grace is what a member has to come to an end.
const grace = 3 * time.Second

func ready(pod *v1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
