package config

import kubeletconfig "k8s.io/kubelet/config/v1beta1"

// Configz returns the copy of a configuration with defaults that the kubelet reports at
// /configz. Fields whose zero value selects the default, and fields that have no effect
// here, have the defaults of the kubelet. It is [Masked].
func Configz(cfg *kubeletconfig.KubeletConfiguration) *kubeletconfig.KubeletConfiguration {
	out := Masked(cfg)
	out.APIVersion, out.Kind = kubeletconfig.SchemeGroupVersion.String(), "KubeletConfiguration"
	for f := range fields {
		f.fill(out, f.reported)
	}
	if out.SerializeImagePulls == nil {
		out.SerializeImagePulls = new(out.MaxParallelImagePulls == nil || *out.MaxParallelImagePulls < 2)
	}
	return out
}
