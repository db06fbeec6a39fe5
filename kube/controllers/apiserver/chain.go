package apiserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	policymutating "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	policyvalidating "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/printers"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// syncTimeout limits the start of the informers.
const syncTimeout = 30 * time.Second

// Start gives api the admission, the validation, the tables and the custom resources of kube-apiserver, until stop is
// called or ctx is done. It must be called before the first request, and sets api.Admission and api.Extension;
// further fields of api can be set before. It stores the namespaces default, kube-node-lease,
// kube-public and kube-system and the Service kubernetes, and returns when the configurations
// of admission that exist are in effect. In a synctest bubble, stop must be called before the bubble ends.
func Start(ctx context.Context, api *apitest.Server, cfg Config) (stop func(), err error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if api.Admission != nil || api.Extension != nil {
		return nil, errors.New("apiserver: Server.Admission or Server.Extension is set")
	}
	if api.Connect != nil && cfg.Kubelet != nil {
		return nil, errors.New("apiserver: Server.Connect and Config.Kubelet are set")
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &chain{
		api: api, schemas: newSchemas(), ips: &addresses{api: api, prefix: cfg.ServiceCIDR}, ports: &nodePorts{api},
		printers: newPrinters(), converters: map[string]converter{},
	}
	api.Admission, api.Extension = c, c
	if cfg.Kubelet != nil {
		api.Connect = kubelets{c, cfg.Kubelet}.connect
	}
	if c.access, err = newAccess(api, cfg); err != nil {
		cancel()
		return nil, err
	}
	c.reviews = c.reviewers()
	putInitial(api, cfg.ServiceCIDR)
	factory, err := c.build(ctx, api)
	if err != nil {
		cancel()
		return nil, err
	}
	stop = sync.OnceFunc(func() {
		cancel()
		factory.Shutdown()
	})
	// The plugins begin when their informers have synchronized: they look for that once, and
	// then every 100 ms.
	if err := started(ctx, factory); err != nil {
		stop()
		return nil, err
	}
	cache.WaitFor(ctx, "", c.observed...)
	for _, p := range c.plugins {
		if err := p.ValidateInitialization(); err != nil {
			stop()
			return nil, fmt.Errorf("apiserver: %w", err)
		}
	}
	if err := started(ctx, factory); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// started starts the informers of a factory and waits until they have synchronized.
func started(ctx context.Context, factory informers.SharedInformerFactory) error {
	factory.Start(ctx.Done())
	wait, done := context.WithTimeout(ctx, syncTimeout)
	defer done()
	for kind, synced := range factory.WaitForCacheSync(wait.Done()) {
		if !synced {
			return fmt.Errorf("apiserver: the informer of %v has not synchronized within %v", kind, syncTimeout)
		}
	}
	return nil
}

// A chain is the admission of kube-apiserver, and the extension of the server.
type chain struct {
	api        *apitest.Server
	access     *access
	reviews    map[string]rest.Creater
	schemas    *schemas
	ips        *addresses
	ports      *nodePorts
	plugins    []plugin
	observed   []cache.DoneChecker             // the configurations of webhooks that exist
	mutating   []admission.MutationInterface   // in the order of kube-apiserver
	validating []admission.ValidationInterface // likewise
	strategies map[string]rest.RESTUpdateStrategy
	printers   func() *printers.HumanReadableGenerator
	conversion *conversion.CRConverterFactory

	mu         sync.Mutex
	converters map[string]converter // by the name of the definition
}

// A plugin is what the four plugins need.
type plugin interface {
	admission.Interface
	SetExternalKubeClientSet(kubernetes.Interface)
	SetExternalKubeInformerFactory(informers.SharedInformerFactory)
	SetDrainedNotification(<-chan struct{})
	SetUnconditionalAuthorizer(authorizer.UnconditionalAuthorizer)
	SetExcludedAdmissionResources([]schema.GroupResource)
	ValidateInitialization() error
}

// webhookPlugin is what the plugins of webhooks need.
type webhookPlugin interface {
	plugin
	initializer.WantsFeatures
	SetServiceResolver(webhook.ServiceResolver)
}

// build constructs the plugins with clients of api, and the informers that they need.
func (c *chain) build(ctx context.Context, api *apitest.Server) (informers.SharedInformerFactory, error) {
	config := api.RESTConfig()
	config.QPS, config.UserAgent = -1, "kube-apiserver"
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamics, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(clients.Discovery()))
	policyM, err := policymutating.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	policyV, err := policyvalidating.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	policyM.SetRESTMapper(mapper)
	policyV.SetRESTMapper(mapper)
	policyM.SetDynamicClient(dynamics)
	policyV.SetDynamicClient(dynamics)
	policyM.InspectFeatureGates(feature.DefaultFeatureGate)
	services := services{api}
	if c.conversion, err = newConverters(services); err != nil {
		return nil, err
	}
	c.strategies = newStrategies(clients)
	factory.Core().V1().Namespaces().Informer()
	configurations := factory.Admissionregistration().V1()
	configurations.MutatingAdmissionPolicies().Informer()
	configurations.MutatingAdmissionPolicyBindings().Informer()
	configurations.ValidatingAdmissionPolicies().Informer()
	configurations.ValidatingAdmissionPolicyBindings().Informer()
	give := func(p plugin) {
		p.SetExternalKubeClientSet(clients)
		p.SetExternalKubeInformerFactory(factory)
		p.SetDrainedNotification(ctx.Done())
		p.SetUnconditionalAuthorizer(allowed{})
		p.SetExcludedAdmissionResources(reviews)
	}
	giveHook := func(p webhookPlugin) error {
		p.InspectFeatureGates(feature.DefaultFeatureGate)
		p.SetServiceResolver(services)
		give(p)
		return p.ValidateInitialization()
	}
	c.plugins = []plugin{policyM, policyV}
	for _, p := range c.plugins {
		give(p)
	}
	hookM := &deferredMutation[*mutating.Plugin]{}
	hookM.make = func() (*mutating.Plugin, error) {
		p, err := mutating.NewMutatingWebhook(nil)
		if err != nil {
			return nil, err
		}
		return p, giveHook(p)
	}
	hookV := &deferredValidation[*validating.Plugin]{}
	hookV.make = func() (*validating.Plugin, error) {
		p, err := validating.NewValidatingAdmissionWebhook(nil)
		if err != nil {
			return nil, err
		}
		return p, giveHook(p)
	}
	observedM, err := hookM.observe(configurations.MutatingWebhookConfigurations().Informer())
	if err != nil {
		return nil, err
	}
	observedV, err := hookV.observe(configurations.ValidatingWebhookConfigurations().Informer())
	if err != nil {
		return nil, err
	}
	c.observed = []cache.DoneChecker{observedM, observedV}
	c.mutating = []admission.MutationInterface{policyM, hookM}
	c.validating = []admission.ValidationInterface{policyV, hookV}
	return factory, nil
}

// reviews are the resources without admission: their objects are not stored.
var reviews = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}

// allowed is the authorizer of the server: it permits everything.
type allowed struct{}

func (allowed) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

// warnings passes warnings of plugins to the response.
type warnings func(text string)

func (w warnings) AddWarning(_, text string) { w(text) }

// Mutate implements [apitest.Admission].
func (c *chain) Mutate(ctx context.Context, a *apitest.Attempt) error {
	if err := c.schemas.defaults(a); err != nil {
		return err
	}
	if err := c.ips.assign(a); err != nil {
		return err
	}
	if err := c.ports.assign(a); err != nil {
		return err
	}
	ctx = warning.WithWarningRecorder(ctx, warnings(a.Warn))
	attributes, o := record(a), c.newObjects(ctx, a)
	again := attributes.GetReinvocationContext()
	for {
		for _, p := range c.mutating {
			if !p.Handles(attributes.GetOperation()) {
				continue
			}
			if err := p.Admit(ctx, attributes, o); err != nil {
				return err
			}
		}
		if again.IsReinvoke() || !again.ShouldReinvoke() {
			return nil
		}
		again.SetIsReinvoke()
	}
}

// Validate implements [apitest.Admission].
func (c *chain) Validate(ctx context.Context, a *apitest.Attempt) error {
	ctx = warning.WithWarningRecorder(ctx, warnings(a.Warn))
	attributes, o := record(a), c.newObjects(ctx, a)
	for _, p := range c.validating {
		if !p.Handles(attributes.GetOperation()) {
			continue
		}
		if err := p.Validate(ctx, attributes, o); err != nil {
			return err
		}
	}
	return nil
}

// record returns the attributes of a write.
func record(a *apitest.Attempt) admission.Attributes {
	operation := admission.Update
	switch {
	case a.Next == nil:
		operation = admission.Delete
	case a.Old == nil:
		operation = admission.Create
	}
	name := a.Name
	if name == "" && a.Next != nil {
		name = a.Next.(metav1.Object).GetName()
	}
	return admission.NewAttributesRecord(a.Next, a.Old, a.Kind, a.Namespace, name,
		a.Kind.GroupVersion().WithResource(a.Resource), a.Subresource, operation, a.Options, a.DryRun, info(a.User))
}
