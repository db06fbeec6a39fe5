package config

import kubeletconfig "k8s.io/kubelet/config/v1beta1"

// KeyAlgorithms returns clientCertificateKeyAlgorithm and serverCertificateKeyAlgorithm, which a
// KubeletConfiguration has since Kubernetes 1.38: the file of hack/next takes the place of this one.
// Empty: the default.
func KeyAlgorithms(*kubeletconfig.KubeletConfiguration) (client, server string) { return "", "" }
