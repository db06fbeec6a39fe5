package config

// removedGates are the gates that Kubernetes removes after 1.37, with the value of the feature. A
// configuration of an earlier minor version that sets one to that value is accepted with a
// warning; the kubelet refuses to start.
var removedGates = map[string]bool{
	"AggregatedDiscoveryRemoveBetaType":           true,
	"AllowOverwriteTerminationGracePeriodSeconds": false,
	"CRDValidationRatcheting":                     true,
	"CustomResourceFieldSelectors":                true,
	"DisableAllocatorDualWrite":                   true,
	"DynamicResourceAllocation":                   true,
	"ExecProbeTimeout":                            true,
	"InPlacePodVerticalScaling":                   true,
	"JobManagedBy":                                true,
	"KubeletTracing":                              true,
	"MatchLabelKeysInPodAffinity":                 true,
	"MultiCIDRServiceAllocator":                   true,
	"NFTablesProxyMode":                           true,
	"NodeSwap":                                    true,
	"PodGroupPreemptionPolicy":                    false,
	"PodSchedulingReadiness":                      true,
	"PreferSameTrafficDistribution":               true,
	"RecoverVolumeExpansionFailure":               true,
	"SeparateTaintEvictionController":             true,
	"ServiceAccountTokenJTI":                      true,
	"ServiceAccountTokenNodeBinding":              true,
	"ServiceAccountTokenNodeBindingValidation":    true,
	"ServiceAccountTokenPodNodeInfo":              true,
	"SupplementalGroupsPolicy":                    true,
	"SystemdWatchdog":                             true,
	"WinDSR":                                      true,
	"WinOverlay":                                  true,
	"WindowsHostNetwork":                          false,
}

// laterGates are the gates that a kubelet of the next minor version reads and this one does not
// have.
var laterGates = []string{"DynamicNodeLocalEphemeralVolumes"}

// specOf returns the specification of a gate: that of this release, or of one that it has
// removed; false if the gate is unknown.
func specOf(name string) (spec gateSpec, known bool) {
	if spec, known = kubernetesGates[name]; known {
		return spec, true
	}
	value, known := removedGates[name]
	return gateSpec{enabled: value, locked: true}, known
}
