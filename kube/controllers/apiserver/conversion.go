package apiserver

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/util/webhook"
)

// newConverters returns the factory of the converters between the versions of custom
// resources, which call the webhooks of their definitions.
func newConverters(services webhook.ServiceResolver) (*conversion.CRConverterFactory, error) {
	return conversion.NewCRConverterFactory(services, func(r webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver { return r })
}

// A converter converts custom resources as of a generation of their definition.
type converter struct {
	definition types.UID
	generation int64
	runtime.ObjectConvertor
}

// Convert implements [apitest.Extension].
func (c *chain) Convert(_ context.Context, d, o runtime.Object, version schema.GroupVersion) (runtime.Object, error) {
	meta := d.(metav1.Object)
	c.mu.Lock()
	known := c.converters[meta.GetName()]
	if known.definition != meta.GetUID() || known.generation != meta.GetGeneration() || known.ObjectConvertor == nil {
		parsed, err := definition(d)
		if err != nil {
			c.mu.Unlock()
			return nil, err
		}
		c.schemas.scheme.Default(parsed)
		safe, _, err := c.conversion.NewConverter(parsed)
		if err != nil {
			c.mu.Unlock()
			return nil, err
		}
		known = converter{meta.GetUID(), meta.GetGeneration(), safe}
		c.converters[meta.GetName()] = known
	}
	c.mu.Unlock()
	return known.ConvertToVersion(o, version)
}
