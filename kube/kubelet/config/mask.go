package config

import (
	"net/url"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

const (
	// masked replaces a value of a configuration.
	masked = "<masked>"

	// classified is the annotation of a flag whose value is masked, and the value at /flagz,
	// as in Kubernetes.
	classified      = "classified"
	classifiedValue = "CLASSIFIED"
)

// Masked returns a copy of a configuration without the values that may be credentials, for
// logs and clients: the values of staticPodURLHeader, and user, query and fragment of
// staticPodURL.
func Masked(cfg *kubeletconfig.KubeletConfiguration) *kubeletconfig.KubeletConfiguration {
	out := cfg.DeepCopy()
	for f := range fields {
		if value, ok := f.value(out, false); ok && f.confidential {
			switch v := value.Addr().Interface().(type) {
			case *string:
				*v = maskURL(*v)
			case *map[string][]string:
				for name := range *v {
					(*v)[name] = []string{masked}
				}
			}
		}
	}
	return out
}

// maskURL returns a URL without the parts that may contain credentials.
func maskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" {
		return masked
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// classification returns the annotation of a flag whose value may be a credential: "url" if
// that is true of parts of a URL; nil if it is none.
func classification(name string) map[string][]string {
	if name == "storage-driver-password" { // of cAdvisor
		return map[string][]string{classified: {"true"}}
	}
	for f := range fields {
		switch {
		case f.flag != name || !f.confidential:
		case f.flagKind() == "string":
			return map[string][]string{classified: {"url"}}
		default:
			return map[string][]string{classified: {"true"}}
		}
	}
	return nil
}

// maskFlag returns the value of a flag with annotations for /flagz.
func maskFlag(text string, annotations map[string][]string) string {
	switch kind := annotations[classified]; {
	case len(kind) == 0:
		return text
	case kind[0] == "url":
		return maskURL(text)
	}
	return classifiedValue
}
