package controllers

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/scale"
	cmnames "k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/podgc"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
)

// The defaults of kube-controller-manager.
const (
	nodeMonitorPeriod       = 5 * time.Second
	nodeStartupGracePeriod  = time.Minute
	nodeEvictionRate        = 0.1  // nodes per second
	secondaryEvictionRate   = 0.01 // in a zone with too many unready nodes
	largeClusterSize        = 50   // in smaller zones the secondary rate is 0
	unhealthyZoneThreshold  = 0.55 // share of unready nodes
	terminatedPodsThreshold = 12500
)

func newNodeLifecycle(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	core := e.informers.Core().V1()
	c, err := nodelifecycle.NewNodeLifecycleController(
		ctx, e.informers.Coordination().V1().Leases(), core.Pods(), core.Nodes(), e.informers.Apps().V1().DaemonSets(), client,
		nodeMonitorPeriod, nodeStartupGracePeriod, e.cfg.NodeMonitorGracePeriod,
		nodeEvictionRate, secondaryEvictionRate, largeClusterSize, unhealthyZoneThreshold,
	)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func newTaintEviction(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	core := e.informers.Core().V1()
	c, err := tainteviction.New(ctx, client, core.Pods(), core.Nodes(), cmnames.TaintEvictionController)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func newPodGC(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	core := e.informers.Core().V1()
	return podgc.NewPodGC(ctx, client, core.Pods(), core.Nodes(), terminatedPodsThreshold).Run, nil
}

func newDisruption(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	scales, err := scale.NewForConfig(e.as(cmnames.DisruptionController), e.kinds, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return nil, err
	}
	apps, core := e.informers.Apps().V1(), e.informers.Core().V1()
	c := disruption.NewDisruptionController(
		ctx, core.Pods(), e.informers.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), client, e.kinds, scales, client.Discovery(),
	)
	return workers(c.Run, 1), nil
}
