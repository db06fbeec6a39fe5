package controllers

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
)

func newDeployments(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	apps := e.informers.Apps().V1()
	c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), e.informers.Core().V1().Pods(), client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 5), nil
}

func newReplicaSets(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	c := replicaset.NewReplicaSetController(ctx, e.informers.Apps().V1().ReplicaSets(), e.informers.Core().V1().Pods(), client, replicaset.BurstReplicas)
	return workers(c.Run, 5), nil
}

func newReplicationControllers(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	core := e.informers.Core().V1()
	c := replication.NewReplicationManager(ctx, core.Pods(), core.ReplicationControllers(), client, replication.BurstReplicas)
	return workers(c.Run, 5), nil
}

func newStatefulSets(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	apps, core := e.informers.Apps().V1(), e.informers.Core().V1()
	c := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), client)
	return workers(c.Run, 5), nil
}

func newDaemonSets(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	apps, core := e.informers.Apps().V1(), e.informers.Core().V1()
	backoff := flowcontrol.NewBackOff(time.Second, 15*time.Minute)
	c, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), client, backoff)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 2), nil
}

func newJobs(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	scheduling := e.informers.Scheduling().V1beta1() // used with the feature WorkloadWithJob only
	c, err := job.NewController(ctx, client, e.informers.Core().V1().Pods(), e.informers.Batch().V1().Jobs(), scheduling.Workloads(), scheduling.PodGroups())
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 5), nil
}

func newCronJobs(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	batch := e.informers.Batch().V1()
	c, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 5), nil
}

func newTTLAfterFinished(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	return workers(ttlafterfinished.New(ctx, e.informers.Batch().V1().Jobs(), client).Run, 5), nil
}

// workers calls run with a number of workers.
func workers(run func(context.Context, int), n int) func(context.Context) {
	return func(ctx context.Context) { run(ctx, n) }
}
