package controllers

import (
	"context"

	"k8s.io/client-go/kubernetes"
	cmnames "k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// A component is a controller of kube-controller-manager, or kube-scheduler.
type component struct {
	name, alias string

	// build constructs the controller, with a client of its own. It returns the function
	// that runs the controller until its context is done, which must be called in any case:
	// it also stops the goroutines that build has started.
	build func(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error)
}

// all are the controllers of this package. The numbers of workers and the periods of all
// of them are the defaults of kube-controller-manager.
var all = []component{
	{cmnames.CronJobController, "cronjob", newCronJobs},
	{cmnames.DaemonSetController, "daemonset", newDaemonSets},
	{cmnames.DeploymentController, "deployment", newDeployments},
	{cmnames.DisruptionController, "disruption", newDisruption},
	{cmnames.EndpointsController, "endpoint", newEndpoints},
	{cmnames.EndpointSliceController, "endpointslice", newEndpointSlices},
	{cmnames.EphemeralVolumeController, "ephemeral-volume", newEphemeralVolumes},
	{cmnames.GarbageCollectorController, "garbagecollector", newGarbageCollector},
	{cmnames.HorizontalPodAutoscalerController, "horizontalpodautoscaling", newAutoscaler},
	{cmnames.JobController, "job", newJobs},
	{cmnames.NamespaceController, "namespace", newNamespaces},
	{cmnames.NodeLifecycleController, "nodelifecycle", newNodeLifecycle},
	{cmnames.PodGarbageCollectorController, "podgc", newPodGC},
	{cmnames.ReplicaSetController, "replicaset", newReplicaSets},
	{cmnames.ReplicationControllerController, "replicationcontroller", newReplicationControllers},
	{cmnames.ResourceQuotaController, "resourcequota", newResourceQuotas},
	{cmnames.ServiceAccountController, "serviceaccount", newServiceAccounts},
	{cmnames.StatefulSetController, "statefulset", newStatefulSets},
	{cmnames.TaintEvictionController, "", newTaintEviction},
	{cmnames.TTLAfterFinishedController, "ttl-after-finished", newTTLAfterFinished},
}
