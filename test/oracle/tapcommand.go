package oracle

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	criserve "github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/test/internal/cli"
)

// tapCommand records the kubelet of a node, which must be started afterwards with the other socket, until ctx is done.
func tapCommand(ctx context.Context, args []string, out io.Writer) (err error) {
	fs := flag.NewFlagSet("tap", flag.ContinueOnError)
	endpoint := fs.String("runtime", "unix:///run/containerd/containerd.sock", "`endpoint` of the runtime")
	listen := fs.String("listen", "", "`endpoint` for the kubelet: its containerRuntimeEndpoint")
	kubeconfig := fs.String("kubeconfig", "", "`file` of a client that may watch the pods of the node")
	node := fs.String("node", "", "`name` of the node")
	dir := fs.String("dir", "", "`directory` of the recording")
	if _, err := parse(fs, args, 0, out); err != nil {
		return err
	}
	if *listen == "" || *kubeconfig == "" || *node == "" || *dir == "" {
		return errors.New("tap requires --listen, --kubeconfig, --node and --dir")
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	conn, err := remote.Dial(ctx, *endpoint, remote.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	tap, err := newTap(*dir, *node, conn.Name)
	if err != nil {
		return err
	}
	if err := tap.watch(ctx, client, *node); err != nil {
		return err
	}
	listener, err := criserve.Listen(ctx, *listen)
	if err != nil {
		return err
	}
	cli.NewPrinter(out)("start the kubelet with containerRuntimeEndpoint %s", *listen)
	return tap.serve(ctx, listener, criserve.Config{Runtime: conn.Runtime, Images: conn.Images})
}

// watch observes the pods of a node until ctx is done. It returns when it has observed those of the first list.
func (t *tap) watch(ctx context.Context, client kubernetes.Interface, node string) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}))
	pods := factory.Core().V1().Pods().Informer()
	add := func(object any, deleted bool) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if pod, ok := object.(*v1.Pod); ok {
			t.observe(ctx, pod, deleted)
		}
	}
	handler, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { add(o, false) }, UpdateFunc: func(_, o any) { add(o, false) }, DeleteFunc: func(o any) { add(o, true) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return fmt.Errorf("watch the pods of node %s: %w", node, ctx.Err())
	}
	return nil
}
