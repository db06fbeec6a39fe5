package criproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// maxMessage is the size limit of messages in bytes, that of the kubelet's CRI client.
const maxMessage = 16 << 20

// Config configures a proxy.
type Config struct {
	// Listen is the path of the unix socket that the proxy creates. Required.
	Listen string

	// Upstream is the endpoint that calls are forwarded to: "unix:///run/...". Required.
	Upstream string

	// Responses reports whether the responses of a method, such as "CreateContainer", are
	// recorded. If nil, all are. Responses of streams are never recorded.
	Responses func(method string) bool

	// MaxCalls and MaxBytes bound the record. Zero means 200,000 calls and 256 MiB.
	MaxCalls int
	MaxBytes int
}

// A Proxy forwards CRI calls and records them.
type Proxy struct {
	responses func(method string) bool
	upstream  *grpc.ClientConn
	server    *grpc.Server
	served    chan error
	recorder
}

// New starts a proxy. The caller must close it.
func New(cfg Config) (*Proxy, error) {
	if cfg.Listen == "" || cfg.Upstream == "" {
		return nil, errors.New("criproxy: Config.Listen or Config.Upstream is empty")
	}
	if cfg.MaxCalls < 0 || cfg.MaxBytes < 0 {
		return nil, errors.New("criproxy: Config.MaxCalls or Config.MaxBytes is negative")
	}
	p := &Proxy{responses: cfg.Responses, served: make(chan error, 1)}
	p.maxCalls, p.maxBytes = cfg.MaxCalls, cfg.MaxBytes
	if p.maxCalls == 0 {
		p.maxCalls = 200_000
	}
	if p.maxBytes == 0 {
		p.maxBytes = 256 << 20
	}
	var err error
	p.upstream, err = grpc.NewClient(cfg.Upstream, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{}), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("criproxy: %w", err)
	}
	l, err := net.Listen("unix", cfg.Listen)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("criproxy: %w", err), p.upstream.Close())
	}
	p.server = grpc.NewServer(grpc.ForceServerCodec(codec{}), grpc.UnknownServiceHandler(p.forward),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	go func() { p.served <- p.server.Serve(l) }()
	return p, nil
}

// Close cancels the calls in progress and removes the socket. It must be called once.
func (p *Proxy) Close() error {
	p.server.Stop()
	return errors.Join(<-p.served, p.upstream.Close())
}

// forward passes on one call, unary or not: on the wire both are streams.
func (p *Proxy) forward(_ any, downstream grpc.ServerStream) error {
	began := time.Now()
	method, _ := grpc.MethodFromServerStream(downstream)
	var request frame
	if err := downstream.RecvMsg(&request); err != nil {
		return err
	}
	c := call{method: method, began: began, request: request}
	finish := p.begin(&c)
	err := p.relay(downstream, &c)
	finish(err)
	return err
}

// relay sends the request upstream and the responses back. It sets the response of c if it
// is to be recorded.
func (p *Proxy) relay(downstream grpc.ServerStream, c *call) error {
	ctx, cancel := context.WithCancel(outgoing(downstream.Context()))
	defer cancel()
	stream, err := p.upstream.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, c.method)
	if err != nil {
		return err
	}
	// An io.EOF means that the stream has an error, which RecvMsg returns.
	if err := stream.SendMsg(&c.request); err != nil && err != io.EOF {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	record := !streams(c.method) && (p.responses == nil || p.responses(path.Base(c.method)))
	for {
		var response frame
		if err := stream.RecvMsg(&response); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if record {
			c.response = response
		}
		if err := downstream.SendMsg(&response); err != nil {
			return err
		}
	}
}

// outgoing returns ctx with the metadata of the incoming call, without those that gRPC sets
// itself.
func outgoing(ctx context.Context) context.Context {
	in, _ := metadata.FromIncomingContext(ctx)
	out := metadata.MD{}
	for key, values := range in {
		if !strings.HasPrefix(key, ":") && key != "content-type" && key != "user-agent" {
			out[key] = values
		}
	}
	return metadata.NewOutgoingContext(ctx, out)
}

// A frame is an encoded message.
type frame []byte

// codec passes on encoded messages. It has the name of the codec of protocol buffers,
// because it appears in the content type of requests.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) ([]byte, error) { return *v.(*frame), nil }

func (codec) Unmarshal(data []byte, v any) error {
	*v.(*frame) = append(frame{}, data...)
	return nil
}
