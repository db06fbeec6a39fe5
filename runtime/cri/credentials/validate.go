package credentials

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	kubeletconfig "k8s.io/kubelet/config/v1"
)

// API versions of the requests and responses of plugins.
const (
	pluginGroup = "credentialprovider.kubelet.k8s.io/"
	pluginV1    = pluginGroup + "v1"
)

var pluginVersions = []string{pluginV1, pluginGroup + "v1beta1", pluginGroup + "v1alpha1"}

// validate returns an error for each invalid field.
func validate(providers []kubeletconfig.CredentialProvider) []error {
	var errs []error
	if len(providers) == 0 {
		errs = append(errs, fmt.Errorf("providers: is required"))
	}
	names := map[string]bool{}
	for i, p := range providers {
		bad := func(field, format string, args ...any) {
			errs = append(errs, fmt.Errorf("providers[%d].%s: %s", i, field, fmt.Sprintf(format, args...)))
		}
		if why := badName(p.Name); why != "" {
			bad("name", "%s", why)
		} else if names[p.Name] {
			bad("name", "%q is a duplicate", p.Name)
		}
		names[p.Name] = true
		if len(p.MatchImages) == 0 {
			bad("matchImages", "is required")
		}
		for j, m := range p.MatchImages {
			if _, err := parsePattern(m); err != nil {
				bad(fmt.Sprintf("matchImages[%d]", j), "pattern %v", err)
			}
		}
		switch d := p.DefaultCacheDuration; {
		case d == nil:
			bad("defaultCacheDuration", "is required")
		case d.Duration < 0:
			bad("defaultCacheDuration", "is negative")
		}
		if !slices.Contains(pluginVersions, p.APIVersion) {
			bad("apiVersion", "is %q, not one of %s", p.APIVersion, strings.Join(pluginVersions, ", "))
		}
		for j, arg := range p.Args {
			if strings.ContainsRune(arg, 0) {
				bad(fmt.Sprintf("args[%d]", j), "contains a NUL byte")
			}
		}
		for j, e := range p.Env {
			if e.Name == "" || strings.ContainsAny(e.Name, "=\x00") {
				bad(fmt.Sprintf("env[%d].name", j), "%q is not a variable name", e.Name)
			}
			if strings.ContainsRune(e.Value, 0) {
				bad(fmt.Sprintf("env[%d].value", j), "contains a NUL byte")
			}
		}
		if p.TokenAttributes != nil {
			validateTokens(p, func(field, format string, args ...any) {
				bad("tokenAttributes."+field, format, args...)
			})
		}
	}
	return errs
}

func validateTokens(p kubeletconfig.CredentialProvider, bad func(field, format string, args ...any)) {
	t := p.TokenAttributes
	if t.ServiceAccountTokenAudience == "" {
		bad("serviceAccountTokenAudience", "is required")
	}
	switch t.CacheType {
	case kubeletconfig.TokenServiceAccountTokenCacheType, kubeletconfig.ServiceAccountServiceAccountTokenCacheType:
	case "":
		bad("cacheType", "is required: Token or ServiceAccount")
	default:
		bad("cacheType", "is %q, not Token or ServiceAccount", t.CacheType)
	}
	if slices.Contains(pluginVersions[1:], p.APIVersion) {
		bad("serviceAccountTokenAudience", "requires apiVersion %s, not %s", pluginV1, p.APIVersion)
	}
	if t.RequireServiceAccount == nil {
		bad("requireServiceAccount", "is required")
	} else if len(t.RequiredServiceAccountAnnotationKeys) > 0 && !*t.RequireServiceAccount {
		// A pod without service account has no annotations.
		bad("requiredServiceAccountAnnotationKeys", "needs requireServiceAccount")
	}
	keys := map[string]bool{}
	for _, list := range []struct {
		field string
		keys  []string
	}{
		{"requiredServiceAccountAnnotationKeys", t.RequiredServiceAccountAnnotationKeys},
		{"optionalServiceAccountAnnotationKeys", t.OptionalServiceAccountAnnotationKeys},
	} {
		for j, key := range list.keys {
			field := fmt.Sprintf("%s[%d]", list.field, j)
			if why := validation.IsQualifiedName(strings.ToLower(key)); len(why) > 0 {
				bad(field, "%q is not an annotation key: %s", key, strings.Join(why, "; "))
			}
			if keys[key] {
				bad(field, "%q is a duplicate", key)
			}
			keys[key] = true
		}
	}
}

// badName returns why a plugin name is invalid; "" if it is valid. It must be a file name
// on every operating system.
func badName(name string) string {
	switch {
	case name == "":
		return "is required"
	case name == "." || name == "..":
		return fmt.Sprintf("%q is not a file name", name)
	}
	for _, r := range name {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`/\:`, r) {
			return fmt.Sprintf("%q is not a plain file name: it has %q", name, r)
		}
	}
	return ""
}
