// Package logs has what a node agent needs in addition to log/slog: messages of the libraries of
// Kubernetes, which log with klog, in the log of the agent, and limits for what other programs
// put into log lines.
//
// # Behavior
//
// [Klog] and [Context] write the messages of the CRI client and of client-go to a slog.Logger, at
// debug level. [Bounded] limits the size of a record, and [Text] that of a text in a record, an
// event or a span. [Repeats] lowers the level of messages that repeat while a server has not
// started.
//
// # Usage
//
//	logger := slog.New(logs.Bounded(slog.NewJSONHandler(os.Stderr, nil)))
//	service, err := runtimeservice.Version(logs.Context(ctx, logger), "")
//
// # Concurrency
//
// Everything is safe for concurrent use if the handlers are.
//
// # Guarantees and limits
//
//   - A record of Bounded has at most 2 KiB for the message and for each value; the beginning and
//     the end of larger ones remain, with the number of bytes.
//   - Nothing is written by klog itself while functions are called with a Context.
//
// # Differences from the kubelet
//
// The kubelet logs with klog, and does not limit the size of its messages.
//
// # Testing
//
// Tests log to a buffer; Repeats is tested in virtual time.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package logs
