package main

import (
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// setStandalonePorts sets the ports of a kubelet without a cluster to those that a kubelet
// opens: 10248 for /healthz, and 10250 for the API, if the configuration grants access
// without an API server.
func setStandalonePorts(k *kubeletconfig.KubeletConfiguration) {
	if k.HealthzPort == nil {
		k.HealthzPort = new(int32(10248))
	}
	webhook := k.Authentication.Webhook.Enabled
	if k.Port == 0 && k.Authorization.Mode == kubeletconfig.KubeletAuthorizationModeAlwaysAllow && (webhook == nil || !*webhook) {
		k.Port = 10250
	}
}
