package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/features"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// options are the peer's arguments, checked.
type options struct {
	url        string
	kubeconfig string
	form       string
	lists      string
	fields     bool
	namespaces int
	timeout    time.Duration
	journal    bool
	// compression leaves it to client-go, which asks for gzip.
	compression bool
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("client-go-peer", flag.ContinueOnError)
	flags.StringVar(&o.url, "url", "", "the server, as http://127.0.0.1:PORT")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "a kubeconfig file, instead of --url")
	flags.StringVar(&o.form, "form", "protobuf", "json or protobuf")
	flags.StringVar(&o.lists, "lists", "stream", "whole, pages or stream")
	flags.BoolVar(&o.fields, "fields", false, "the handler reads node name, phase and labels")
	flags.IntVar(&o.namespaces, "namespaces", 0, "one informer for each of this many namespaces")
	flags.BoolVar(&o.journal, "journal", false, "record every notification")
	flags.BoolVar(&o.compression, "compression", false, "ask for gzip, as client-go does by itself")
	timeout := flags.Float64("timeout", 900, "the longest wait for anything, in seconds")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.timeout = time.Duration(*timeout * float64(time.Second))
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case (o.url == "") == (o.kubeconfig == ""):
		return o, fmt.Errorf("exactly one of --url and --kubeconfig is needed")
	case o.form != "json" && o.form != "protobuf":
		return o, fmt.Errorf("--form is %q, expected json or protobuf", o.form)
	case o.lists != "whole" && o.lists != "pages" && o.lists != "stream":
		return o, fmt.Errorf("--lists is %q, expected whole, pages or stream", o.lists)
	case o.namespaces < 0:
		return o, fmt.Errorf("--namespaces is %d, expected 0 or more", o.namespaces)
	}
	return o, nil
}

// restConfig returns how to reach the server: no limit on requests, no compression unless it is
// asked for (as kube-controller-manager and kube-scheduler set it), all else as client-go has it.
func (o options) restConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags(o.url, o.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.DisableCompression = !o.compression
	config.UserAgent = "client-go-peer"
	config.ContentType = "application/json"
	config.AcceptContentTypes = "application/json"
	if o.form == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	return config, nil
}

// chooseLists turns client-go's watch-list on or off, which it reads once, at its first use.
//
// Without it the reflector asks for pages of 500, and it is the server that answers whole or paged.
func (o options) chooseLists() error {
	stream := o.lists == "stream"
	name := "KUBE_FEATURE_" + string(features.WatchListClient)
	if err := os.Setenv(name, strconv.FormatBool(stream)); err != nil {
		return err
	}
	if features.FeatureGates().Enabled(features.WatchListClient) != stream {
		return fmt.Errorf("client-go had read its feature gates before %s was set", name)
	}
	return nil
}
