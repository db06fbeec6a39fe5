package machine

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/component-helpers/nodedeclaredfeatures/types"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/runtime"
)

// DeclaredFeatures are the features that the node declares (KEP-5328): the scheduler does
// not bind pods that require another one, and the API server rejects resizes that do. As in
// the kubelet they are those of the runtime at the start.
type DeclaredFeatures struct {
	Names   []string // sorted
	set     ndf.FeatureSet
	version *utilversion.Version
}

// declareFeatures returns the features of a node with this Configuration and this runtime.
// Containers can be resized if resize is set.
func declareFeatures(enabled func(gate string) bool, resize bool, has runtime.Features) DeclaredFeatures {
	version := utilversion.MustParseSemantic(options.Version)
	names := ndf.DefaultFramework.DiscoverNodeFeatures(&ndf.NodeConfiguration{
		Version: version,
		FeatureGates: types.FeatureGateMap{
			"ExtendWebSocketsToKubelet":               true,
			"InPlacePodLevelResourcesVerticalScaling": resize,
			"InPlacePodVerticalScalingInitContainers": resize,
			"RestartAllContainersOnContainerExits":    true,
			"UserNamespacesHostNetworkSupport":        enabled("UserNamespacesHostNetworkSupport"),
			"VolumeBindMountOptions":                  enabled("VolumeBindMountOptions"),
		},
		RuntimeFeatures: ndf.RuntimeFeatures{UserNamespacesHostNetwork: has.UserNamespacesHostNetwork, MountOptions: has.MountOptions},
	})
	return DeclaredFeatures{Names: names, set: ndf.DefaultFramework.MustMapSorted(names), version: version}
}

// newDeclaredFeatures returns the features of the node.
func newDeclaredFeatures(ctx context.Context, b stores.Base, rt runtime.FeatureReporter, resize bool) DeclaredFeatures {
	has, err := rt.Features(ctx)
	if err != nil {
		b.Logger.Warn("Failed to read the features of the runtime; the node declares none of them until the kubelet restarts", "err", err)
	}
	return declareFeatures(func(gate string) bool { return config.Enabled(b.Configuration, gate) }, resize, has)
}

// Admit implements pipeline.Admitter: it rejects a pod that requires a feature that the
// node does not declare, such as a static pod, which is not scheduled.
func (d DeclaredFeatures) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	required, err := ndf.DefaultFramework.InferForPodScheduling(&ndf.PodInfo{Spec: &pod.Spec, Status: &pod.Status}, d.version)
	if err != nil {
		return volumes.RejectFeature("Failed to infer pod's feature requirements: %v", err)
	}
	match, err := ndf.DefaultFramework.MatchNodeFeatureSet(required, d.set)
	if err != nil {
		return volumes.RejectFeature("Failed to match pod's feature requirements against the node: %v", err)
	}
	if !match.IsMatch {
		return volumes.RejectFeature("Pod requires node features that are not available: %s", strings.Join(match.UnsatisfiedRequirements, ", "))
	}
	return nil
}
