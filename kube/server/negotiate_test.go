package server

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Observed with a kubelet 1.37.2, except for v=1 and an invalid quality.
func TestNegotiate(t *testing.T) {
	const structured = ";v=v1beta1;g=config.k8s.io;as=Statusz"
	text := zpageFormat{mediaType: textType}
	for accept, want := range map[string]zpageFormat{
		"":                              text,
		" ":                             text,
		"*/*":                           text,
		"text/*":                        text,
		"text/plain":                    text,
		"application/json, */*":         text,
		"application/json":              {},
		"application/*":                 {},
		"text/html":                     {},
		"text/plain;q=0":                {},
		"text/plain;q=x":                {},
		"/":                             {},
		"application/json" + structured: {jsonType, "v1beta1"},
		"application/yaml" + structured: {yamlType, "v1beta1"},
		"application/cbor" + structured: {},
		"text/plain" + structured:       {},
		"application/vnd.kubernetes.protobuf" + structured:                             {},
		"application/json;v=v1alpha1;g=config.k8s.io;as=Statusz":                       {jsonType, "v1alpha1"},
		"application/json;v=v1beta1;g=config.k8s.io;as=Flagz":                          {},
		"application/json;v=v1;g=config.k8s.io;as=Statusz":                             {},
		"application/json;v=v1beta1;as=Statusz":                                        {},
		"text/html, application/json" + structured + ";q=0.5, text/plain;q=0.9":        text,
		"text/html, application/json" + structured + ", text/plain;q=0.9":              {jsonType, "v1beta1"},
		"application/yaml" + structured + ", application/json" + structured + ";q=0.9": {yamlType, "v1beta1"},
	} {
		got, ok := negotiate(accept, "Statusz")
		assert.Equal(t, want.mediaType != "", ok, accept)
		if ok {
			assert.Equal(t, want, got, accept)
		}
	}
}
