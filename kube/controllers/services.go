package controllers

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
)

func newEndpoints(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	core := e.informers.Core().V1()
	c := endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), client, 0)
	return workers(c.Run, 5), nil
}

func newEndpointSlices(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	core := e.informers.Core().V1()
	c := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(), e.informers.Discovery().V1().EndpointSlices(), 100, client, 0)
	return workers(c.Run, 5), nil
}
