package images

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// A VerifyPolicy selects the present images that a pod may use only with credentials with which
// they were pulled before (KEP-2535). A pod without these pulls the image again with its own
// credentials; with the pull policy Never the request fails.
type VerifyPolicy string

const (
	// NeverVerify lets all pods use all present images.
	NeverVerify VerifyPolicy = "NeverVerify"

	// NeverVerifyPreloadedImages lets all pods use images that were not pulled by a
	// Manager.
	NeverVerifyPreloadedImages VerifyPolicy = "NeverVerifyPreloadedImages"

	// NeverVerifyAllowlistedImages lets all pods use images that were not pulled by a
	// Manager and are in Config.VerifyAllowlist.
	NeverVerifyAllowlistedImages VerifyPolicy = "NeverVerifyAllowlistedImages"

	// AlwaysVerify lets pods use only images that were pulled anonymously or with
	// credentials that the pod has.
	AlwaysVerify VerifyPolicy = "AlwaysVerify"
)

// A verifier implements a policy.
type verifier struct {
	policy   VerifyPolicy
	exact    map[string]bool // normalized repositories
	prefixes []string        // of normalized repositories, with a trailing slash
}

func newVerifier(policy VerifyPolicy, allow []string) (verifier, error) {
	v := verifier{policy: policy, exact: map[string]bool{}}
	switch policy {
	case NeverVerify, NeverVerifyPreloadedImages, AlwaysVerify:
		if len(allow) > 0 {
			return v, fmt.Errorf("images: Config.VerifyAllowlist is for %s; Config.Verify is %s", NeverVerifyAllowlistedImages, policy)
		}
	case NeverVerifyAllowlistedImages:
	default:
		return v, fmt.Errorf("images: Config.Verify %q is none of %s, %s, %s, %s", policy,
			NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages, AlwaysVerify)
	}
	for _, pattern := range allow {
		if err := v.allow(pattern); err != nil {
			return v, fmt.Errorf("images: Config.VerifyAllowlist: %q: %w", pattern, err)
		}
	}
	return v, nil
}

// allow adds an entry of the allowlist.
func (v *verifier) allow(pattern string) error {
	base, wild := strings.CutSuffix(pattern, "/*")
	if wild && (base == "docker.io" || base == "index.docker.io") {
		v.prefixes = append(v.prefixes, "docker.io/")
		return nil
	}
	name := base
	if wild {
		name += "/x" // a registry alone is not a valid reference
	}
	named, err := reference.ParseNormalizedNamed(name)
	switch {
	case strings.Contains(base, "*"):
		return fmt.Errorf("the only wildcard is /* at the end")
	case err != nil:
		return err
	case !reference.IsNameOnly(named):
		return fmt.Errorf("an entry must not have a tag or digest")
	case wild:
		v.prefixes = append(v.prefixes, strings.TrimSuffix(named.Name(), "x"))
	default:
		v.exact[named.Name()] = true
	}
	return nil
}

// required reports whether a pod must present credentials for a present image; pulled reports
// whether a Manager pulled it or may have.
func (v *verifier) required(image string, pulled bool) bool {
	switch v.policy {
	case NeverVerify:
		return false
	case NeverVerifyPreloadedImages:
		return pulled
	case NeverVerifyAllowlistedImages:
		return pulled || !v.allowed(fullName(repository(image)))
	default:
		return true
	}
}

func (v *verifier) allowed(name string) bool {
	if v.exact[name] {
		return true
	}
	for _, prefix := range v.prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
