package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/scale"
	cmnames "k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	podmetrics "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	resourcemetrics "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// The defaults of kube-controller-manager.
const (
	autoscalerPeriod         = 15 * time.Second
	autoscalerStabilization  = 5 * time.Minute
	autoscalerTolerance      = 0.1
	autoscalerCPUInit        = 5 * time.Minute
	autoscalerReadinessDelay = 30 * time.Second
	autoscalerWorkers        = 5
)

func newAutoscaler(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	config := e.as(cmnames.HorizontalPodAutoscalerController)
	scales, err := scale.NewForConfig(config, e.kinds, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return nil, err
	}
	resources, err := resourcemetrics.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of resource metrics: %w", err)
	}
	external, err := external_metrics.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of external metrics: %w", err)
	}
	versions := custom_metrics.NewAvailableAPIsGetter(client.Discovery())
	c := podautoscaler.NewHorizontalController(
		ctx, client.CoreV1(), scales, client.AutoscalingV2(), e.kinds,
		podmetrics.NewRESTMetricsClient(resources, custom_metrics.NewForConfig(config, e.kinds, versions), external),
		e.informers.Autoscaling().V2().HorizontalPodAutoscalers(), e.informers.Core().V1().Pods(),
		autoscalerPeriod, autoscalerStabilization, autoscalerTolerance, autoscalerCPUInit, autoscalerReadinessDelay,
	)
	return func(ctx context.Context) {
		var wait sync.WaitGroup
		defer wait.Wait()
		wait.Go(func() { custom_metrics.PeriodicallyInvalidate(versions, autoscalerPeriod, ctx.Done()) })
		c.Run(ctx, autoscalerWorkers)
	}, nil
}
