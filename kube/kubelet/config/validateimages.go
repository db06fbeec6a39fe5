package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

func (v validation) imageRules() []rule {
	k := v.k
	high, low := *k.ImageGCHighThresholdPercent, *k.ImageGCLowThresholdPercent
	youngest, oldest := k.ImageMinimumGCAge.Duration, k.ImageMaximumGCAge.Duration
	rules := []rule{
		within(high, 0, 100, "imageGCHighThresholdPercent", "image-gc-high-threshold"),
		within(low, 0, 100, "imageGCLowThresholdPercent", "image-gc-low-threshold"),
		when(low >= high, "imageGCLowThresholdPercent (--image-gc-low-threshold) %v must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) %v", low, high),
		when(oldest != 0 && !v.gate("ImageMaximumGCAge"), "ImageMaximumGCAge feature gate is required for Kubelet configuration option imageMaximumGCAge"),
		when(youngest < 0, "imageMinimumGCAge %v must not be negative", youngest),
		when(oldest < 0, "imageMaximumGCAge %v must not be negative", oldest),
		when(oldest > 0 && oldest <= youngest, "imageMaximumGCAge %v must be greater than imageMinimumGCAge %v", oldest, youngest),
		atLeast0(k.RegistryBurst, "registryBurst", "registry-burst"),
		atLeast0(*k.RegistryPullQPS, "registryPullQPS", "registry-qps"),
	}
	if parallel := k.MaxParallelImagePulls; parallel != nil {
		rules = append(rules,
			when(*parallel < 1, "maxParallelImagePulls %v must be a positive number", *parallel),
			when(*parallel > 1 && *k.SerializeImagePulls, "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false"))
	}
	return append(rules, v.verificationRules()...)
}

func (v validation) verificationRules() []rule {
	policy, allowlist := v.k.ImagePullCredentialsVerificationPolicy, v.k.PreloadedImagesVerificationAllowlist
	if !v.gate("KubeletEnsureSecretPulledImages") {
		return []rule{
			// Without the gate the field has no default.
			when(policy != kubeletconfig.NeverVerifyPreloadedImages, "`imagePullCredentialsVerificationPolicy` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"),
			when(len(allowlist) > 0, "`preloadedImagesVerificationAllowlist` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"),
		}
	}
	policies := []kubeletconfig.ImagePullCredentialsVerificationPolicy{
		kubeletconfig.NeverVerify, kubeletconfig.NeverVerifyPreloadedImages, kubeletconfig.NeverVerifyAllowlistedImages, kubeletconfig.AlwaysVerify,
	}
	rules := []rule{when(!slices.Contains(policies, policy),
		"option %q specified for imagePullCredentialsVerificationPolicy. Valid options are %q, %q, %q or %q", policy, policies[0], policies[1], policies[2], policies[3])}
	if len(allowlist) > 0 && policy != kubeletconfig.NeverVerifyAllowlistedImages {
		return append(rules, when(true, "can't set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is not \"NeverVerifyAllowlistedImages\""))
	}
	for _, pattern := range allowlist {
		if err := checkPattern(pattern); err != nil { // the kubelet reports the first one only
			return append(rules, when(true, "invalid image pattern in `preloadedImagesVerificationAllowlist`: %v", err))
		}
	}
	return rules
}

// checkPattern returns an error if a pattern is not an image without tag and digest, nor the
// beginning of images, which ends with "/*".
func checkPattern(pattern string) error {
	if pattern != strings.TrimSpace(pattern) {
		return fmt.Errorf("leading/trailing spaces are not allowed: %s", pattern)
	}
	repository, isPrefix := pattern, strings.HasSuffix(pattern, "/*")
	if isPrefix {
		repository = strings.TrimSuffix(pattern, "*")
	}
	switch {
	case repository == "":
		return fmt.Errorf("the supplied pattern is too short: %s", pattern)
	case strings.Contains(repository, "*"):
		return fmt.Errorf("not a valid wildcard pattern, only patterns ending with '/*' are allowed: %s", pattern)
	case isPrefix && repository == "/":
		return errors.New("at least registry hostname is required")
	case isPrefix:
		return nil
	}
	image, err := reference.Parse(repository)
	if err != nil {
		return fmt.Errorf("failed to parse as an image name: %w", err)
	}
	_, tagged := image.(reference.Tagged)
	_, digested := image.(reference.Digested)
	if tagged || digested {
		return fmt.Errorf("neither tag nor digest is accepted in an image reference: %s", pattern)
	}
	return nil
}
