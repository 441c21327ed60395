/* A raw load generator for brokers that speak Kafka's protocol: Produce v9 and Fetch v12 on plain sockets.
 *
 * It exists to be cheaper than any broker it measures: one thread, epoll, requests built once and only patched (the
 * correlation id, the fetch offset), small requests of one turn leaving in one write. It asks Metadata for the leaders
 * and spreads its connections over the partitions. It is a tool, not part of the product; `bench/clients/raw.py` builds
 * and runs it, and it prints one line of JSON.
 *
 *   loadgen produce --port P --topic T [--connections N] [--depth D] [--batch-bytes B] [--record-bytes R] [--acks A]
 *                   [--seconds S | --requests N] [--warmup-seconds W] [--bytes-max B] [--rate REQUESTS_PER_SECOND]
 *                   [--batch-file F]
 *   loadgen fetch   --port P --topic T [--connections N] [--partition-bytes B] [--seconds S | --passes N] [--check]
 *   loadgen tail    --port P --topic T [--connections N] [--seconds S]: every connection reads all that is written from
 *                   now on, as a consumer that keeps up does.
 *   loadgen stall   --port P --topic T [--depth D] [--seconds S]: asks D times for what is there and reads no answer.
 *   loadgen e2e     as produce, with --rate: a consumer in the same process reads what was written, and the time is
 *                   taken from the moment at which a batch was due to the moment at which it was read.
 *
 * --bytes-max ends a run early, and its warm-up at half as much: the page cache behaves differently after some gigabytes,
 * so a fast broker must not be made to write more of them than a slow one.
 *
 * With --rate, request i is due at start + i / rate whether or not the broker keeps up, and its latency counts from then:
 * waiting behind a slow request is part of it, so no omission is coordinated with the broker.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PARTITIONS_MAX 1024
#define CONNECTIONS_MAX 4096
#define DEPTH_MAX 4096
#define BROKERS_MAX 64
#define BATCH_HEADER_BYTES 61
#define CRC_START 21
/* Frames up to this size are copied together into one write; larger ones are sent from where they lie. */
#define GATHER_FRAME_BYTES_MAX 16384
#define GATHER_BYTES_MAX (256 * 1024)
#define ATTEMPTS_MAX 250
#define ATTEMPT_PAUSE_US 20000
/* How long the last answers may take before the run counts as failed. */
#define GIVE_UP_NS 30000000000ull

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;

static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "loadgen: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(1);
}

static void *allocate(size_t size) {
    void *memory = calloc(1, size ? size : 1);
    if (!memory) die("out of memory (%zu bytes)", size);
    return memory;
}

static u64 now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (u64)time.tv_sec * 1000000000ull + (u64)time.tv_nsec;
}

/* ---- CRC-32C ------------------------------------------------------------------------------------------------- */

static u32 crc_table[256];

static void crc_prepare(void) {
    for (u32 index = 0; index < 256; index++) {
        u32 crc = index;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
        crc_table[index] = crc;
    }
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static u32 crc_hardware(u32 crc, const u8 *data, size_t size) {
    u64 wide = crc;
    for (; size >= 8; data += 8, size -= 8) {
        u64 word;
        memcpy(&word, data, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (u32)wide;
    for (; size; data++, size--) crc = __builtin_ia32_crc32qi(crc, *data);
    return crc;
}
#endif

static u32 crc32c(const u8 *data, size_t size) {
    u32 crc = 0xffffffffu;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return ~crc_hardware(crc, data, size);
#endif
    for (; size; data++, size--) crc = crc_table[(crc ^ *data) & 0xff] ^ (crc >> 8);
    return ~crc;
}

/* ---- bytes out ----------------------------------------------------------------------------------------------- */

typedef struct {
    u8 *data;
    size_t size, capacity;
} Buffer;

static void reserve(Buffer *buffer, size_t more) {
    if (buffer->size + more <= buffer->capacity) return;
    while (buffer->size + more > buffer->capacity) buffer->capacity = buffer->capacity ? buffer->capacity * 2 : 4096;
    buffer->data = realloc(buffer->data, buffer->capacity);
    if (!buffer->data) die("out of memory");
}

static void put(Buffer *buffer, const void *data, size_t size) {
    reserve(buffer, size);
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

static void write_int(u8 *target, i64 value, int size) {
    for (int index = 0; index < size; index++) target[index] = (u8)((u64)value >> (8 * (size - 1 - index)));
}

static void put_int(Buffer *buffer, i64 value, int size) {
    u8 bytes[8];
    write_int(bytes, value, size);
    put(buffer, bytes, (size_t)size);
}

static void put_uvarint(Buffer *buffer, u64 value) {
    do {
        u8 byte = (u8)(value & 0x7f);
        value >>= 7;
        if (value) byte |= 0x80;
        put(buffer, &byte, 1);
    } while (value);
}

static void put_varint(Buffer *buffer, i64 value) { put_uvarint(buffer, ((u64)value << 1) ^ (u64)(value >> 63)); }

static void put_string(Buffer *buffer, const char *text) {
    put_int(buffer, (i64)strlen(text), 2);
    put(buffer, text, strlen(text));
}

static void put_compact_string(Buffer *buffer, const char *text) {
    put_uvarint(buffer, strlen(text) + 1);
    put(buffer, text, strlen(text));
}

/* ---- bytes in: every read is checked against the end of the frame ---------------------------------------------- */

typedef struct {
    const u8 *data;
    size_t position, size;
} Reader;

static const u8 *take(Reader *reader, size_t size) {
    if (size > reader->size - reader->position) die("the broker's answer ends too early");
    const u8 *data = reader->data + reader->position;
    reader->position += size;
    return data;
}

static i64 read_int(const u8 *data, int size) {
    u64 value = data[0] & 0x80 ? ~0ull : 0;
    for (int index = 0; index < size; index++) value = (value << 8) | data[index];
    return (i64)value;
}

static i64 get_int(Reader *reader, int size) { return read_int(take(reader, (size_t)size), size); }

static u64 get_uvarint(Reader *reader) {
    u64 value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        u8 byte = *take(reader, 1);
        value |= (u64)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    die("a varint in the broker's answer is too long");
    return 0;
}

static void skip_tags(Reader *reader) {
    for (u64 count = get_uvarint(reader); count; count--) {
        get_uvarint(reader);
        take(reader, get_uvarint(reader));
    }
}

/* ---- latencies: 64 steps per power of two, so an error of 1.6 % at most ------------------------------------------ */

typedef struct {
    u64 counts[64 * 64], total, sum, largest;
} Histogram;

static void record_ns(Histogram *histogram, u64 value) {
    unsigned power = value < 64 ? 0 : 63u - (unsigned)__builtin_clzll(value) - 5;
    histogram->counts[power * 64 + (value >> power)]++;
    histogram->total++;
    histogram->sum += value;
    if (value > histogram->largest) histogram->largest = value;
}

static double quantile_us(const Histogram *histogram, double quantile) {
    u64 wanted = (u64)(quantile * (double)histogram->total + 0.999999), seen = 0;
    for (unsigned index = 0; index < 64 * 64; index++) {
        seen += histogram->counts[index];
        if (histogram->counts[index] && seen >= wanted) return (double)((u64)(index % 64) << (index / 64)) / 1000.0;
    }
    return 0;
}

/* ---- what is run ------------------------------------------------------------------------------------------------ */

typedef enum { PRODUCE, FETCH, TAIL, STALL, END_TO_END, MODES } Mode;

static const char *const mode_names[MODES] = {"produce", "fetch", "tail", "stall", "e2e"};

static struct {
    Mode mode;
    const char *host, *topic, *batch_file;
    int port, connections, depth, acks, passes, wait_ms;
    i64 batch_bytes, record_bytes, partition_bytes, requests, bytes_max;
    double seconds, warmup_seconds, rate;
    bool check;
} options = {.host = "127.0.0.1", .connections = 1, .depth = 1, .acks = -1, .batch_bytes = 0, .record_bytes = 100,
             .partition_bytes = 1048576, .seconds = 5, .warmup_seconds = 0, .wait_ms = 500};

typedef struct {
    i32 id;
    char host[256];
    int port;
} Broker;

typedef struct {
    i32 leader;
    i64 start_offset, high_watermark;
} Partition;

static Broker brokers[BROKERS_MAX];
static int broker_count;
static Partition partitions[PARTITIONS_MAX];
static int partition_count;

typedef struct {
    u64 due_ns;
    i32 correlation_id;
} Pending;

typedef struct {
    Buffer frame;
    size_t batch_position; /* of the record batch in the frame */
} Template;

typedef struct {
    int socket, broker;
    bool is_consumer, wants_write, is_done;
    int *partitions; /* the ones it writes to or reads, all led by its broker */
    int partition_total, next_partition, passes;
    Template *templates; /* produce: one per partition; fetch: one in all */
    size_t *offset_positions; /* fetch: where each partition's offset lies in the frame */
    i64 *next_offsets;        /* fetch: by the partition's number */
    i32 next_correlation_id;
    Pending *pending; /* a ring */
    int pending_first, pending_count;
    Buffer gathered;          /* small frames waiting to be written */
    const u8 *out;            /* what is being written now */
    size_t out_size, out_position;
    u8 *in;
    size_t in_size, in_capacity;
} Connection;

static Connection *connections;
static int connection_count, epoll_file;

static struct {
    u64 start_ns, measure_ns, end_ns, last_ns; /* what is answered before measure_ns is warm-up and not counted */
    u64 sent, sent_bytes, answered, measured, records, bytes;
    u64 stamped; /* end to end: batches that a consumer must still see */
    u64 errors, first_error_code, gaps, bad_crc;
    Histogram latency;
} run;

/* ---- building requests ------------------------------------------------------------------------------------------- */

static void put_header(Buffer *frame, int api_key, int version, bool is_flexible) {
    put_int(frame, 0, 4);
    put_int(frame, api_key, 2);
    put_int(frame, version, 2);
    put_int(frame, 0, 4); /* correlation id, patched */
    put_string(frame, "loadgen");
    if (is_flexible) put_uvarint(frame, 0);
}

static void close_frame(Buffer *frame) { write_int(frame->data, (i64)frame->size - 4, 4); }

static u32 random_state = 12345;

static u8 random_byte(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return (u8)(random_state >> 24);
}

static void seal(u8 *batch, size_t size) { write_int(batch + 17, (i64)crc32c(batch + CRC_START, size - CRC_START), 4); }

static i64 wall_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (i64)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* A record batch with as many records of the wanted size as fit into batch_bytes, at least one. */
static Buffer build_batch(void) {
    Buffer batch = {0};
    i64 now = wall_ms(), count = 0;
    reserve(&batch, BATCH_HEADER_BYTES);
    memset(batch.data, 0, BATCH_HEADER_BYTES);
    batch.size = BATCH_HEADER_BYTES;
    u8 *value = allocate((size_t)options.record_bytes);
    do {
        Buffer body = {0};
        put_int(&body, 0, 1);     /* attributes */
        put_varint(&body, 0);     /* timestamp delta */
        put_varint(&body, count); /* offset delta */
        put_varint(&body, -1);    /* no key */
        put_varint(&body, options.record_bytes);
        for (i64 index = 0; index < options.record_bytes; index++) value[index] = random_byte();
        put(&body, value, (size_t)options.record_bytes);
        put_varint(&body, 0); /* no headers */
        put_varint(&batch, (i64)body.size);
        put(&batch, body.data, body.size);
        free(body.data);
        count++;
    } while ((i64)batch.size + options.record_bytes + 12 <= options.batch_bytes);
    free(value);
    u8 *data = batch.data;
    write_int(data + 8, (i64)batch.size - 12, 4);
    write_int(data + 12, -1, 4);
    data[16] = 2;
    write_int(data + 23, count - 1, 4);
    write_int(data + 27, now, 8);
    write_int(data + 35, now, 8);
    write_int(data + 43, -1, 8);
    write_int(data + 51, -1, 2);
    write_int(data + 53, -1, 4);
    write_int(data + 57, count, 4);
    seal(data, batch.size);
    return batch;
}

static Buffer read_batch_file(const char *path) {
    Buffer batch = {0};
    FILE *file = fopen(path, "rb");
    if (!file) die("cannot open %s", path);
    u8 chunk[65536];
    for (size_t size; (size = fread(chunk, 1, sizeof chunk, file)) > 0;) put(&batch, chunk, size);
    fclose(file);
    if (batch.size < BATCH_HEADER_BYTES || batch.data[16] != 2) die("%s is not a record batch", path);
    return batch;
}

static Template build_produce(const Buffer *batch, int partition) {
    Template template = {0};
    Buffer *frame = &template.frame;
    put_header(frame, 0, 9, true);
    put_uvarint(frame, 0); /* no transactional id */
    put_int(frame, options.acks, 2);
    put_int(frame, 30000, 4);
    put_uvarint(frame, 2);
    put_compact_string(frame, options.topic);
    put_uvarint(frame, 2);
    put_int(frame, partition, 4);
    put_uvarint(frame, batch->size + 1);
    template.batch_position = frame->size;
    put(frame, batch->data, batch->size);
    put_uvarint(frame, 0);
    put_uvarint(frame, 0);
    put_uvarint(frame, 0);
    close_frame(frame);
    return template;
}

static void build_fetch(Connection *connection) {
    connection->templates = allocate(sizeof(Template));
    connection->offset_positions = allocate(sizeof(size_t) * (size_t)connection->partition_total);
    Buffer *frame = &connection->templates[0].frame;
    put_header(frame, 1, 12, true);
    put_int(frame, -1, 4);
    put_int(frame, options.wait_ms, 4);
    put_int(frame, 1, 4);
    put_int(frame, 0x7fffffff, 4);
    put_int(frame, 0, 1);
    put_int(frame, 0, 4);  /* no session */
    put_int(frame, -1, 4);
    put_uvarint(frame, 2);
    put_compact_string(frame, options.topic);
    put_uvarint(frame, (u64)connection->partition_total + 1);
    for (int index = 0; index < connection->partition_total; index++) {
        put_int(frame, connection->partitions[index], 4);
        put_int(frame, -1, 4);
        connection->offset_positions[index] = frame->size;
        put_int(frame, 0, 8);
        put_int(frame, -1, 4);
        put_int(frame, -1, 8);
        put_int(frame, options.partition_bytes, 4);
        put_uvarint(frame, 0);
    }
    put_uvarint(frame, 0);
    put_uvarint(frame, 1);
    put_uvarint(frame, 1);
    put_uvarint(frame, 0);
    close_frame(frame);
}

/* ---- asking for the leaders: blocking, once, before the run ------------------------------------------------------- */

static int open_socket(const char *host, int port) {
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses;
    if (getaddrinfo(host, service, &hints, &addresses)) die("cannot resolve %s", host);
    int opened = -1;
    for (struct addrinfo *address = addresses; address && opened < 0; address = address->ai_next) {
        opened = socket(address->ai_family, address->ai_socktype, 0);
        if (opened >= 0 && connect(opened, address->ai_addr, address->ai_addrlen)) {
            close(opened);
            opened = -1;
        }
    }
    freeaddrinfo(addresses);
    if (opened < 0) die("cannot connect to %s:%d: %s", host, port, strerror(errno));
    int on = 1;
    setsockopt(opened, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return opened;
}

static Buffer ask(int opened, Buffer *frame) {
    close_frame(frame);
    for (size_t sent = 0; sent < frame->size;) {
        ssize_t size = send(opened, frame->data + sent, frame->size - sent, MSG_NOSIGNAL);
        if (size <= 0) die("the broker closed the connection");
        sent += (size_t)size;
    }
    Buffer answer = {0};
    size_t wanted = 4;
    while (answer.size < wanted) {
        reserve(&answer, 65536);
        ssize_t size = recv(opened, answer.data + answer.size, 65536, 0);
        if (size <= 0) die("the broker closed the connection");
        answer.size += (size_t)size;
        if (answer.size >= 4) wanted = (size_t)read_int(answer.data, 4) + 4;
    }
    return answer;
}

static void skip_string(Reader *reader) {
    i64 size = get_int(reader, 2);
    if (size > 0) take(reader, (size_t)size);
}

static void skip_int32s(Reader *reader) {
    for (i64 count = get_int(reader, 4); count > 0; count--) get_int(reader, 4);
}

static void read_brokers(Reader *reader) {
    broker_count = 0;
    for (i64 count = get_int(reader, 4); count > 0; count--) {
        if (broker_count == BROKERS_MAX) die("more than %d brokers", BROKERS_MAX);
        Broker *broker = &brokers[broker_count++];
        broker->id = (i32)get_int(reader, 4);
        size_t size = (size_t)get_int(reader, 2);
        const u8 *host = take(reader, size);
        if (size >= sizeof broker->host) die("a broker's host name is too long");
        memcpy(broker->host, host, size);
        broker->host[size] = 0;
        broker->port = (int)get_int(reader, 4);
        skip_string(reader);
    }
}

/* True when every partition of the topic has a leader. */
static bool read_topic(Reader *reader) {
    if (get_int(reader, 4) != 1) die("Metadata does not answer for the topic");
    i64 error = get_int(reader, 2);
    skip_string(reader);
    get_int(reader, 1);
    i64 count = get_int(reader, 4);
    bool is_ready = error == 0 && count > 0;
    if (count > PARTITIONS_MAX) die("more than %d partitions", PARTITIONS_MAX);
    partition_count = (int)count;
    for (; count > 0; count--) {
        is_ready &= get_int(reader, 2) == 0;
        i64 index = get_int(reader, 4);
        if (index < 0 || index >= partition_count) die("Metadata names a partition that cannot be");
        partitions[index].leader = (i32)get_int(reader, 4);
        is_ready &= partitions[index].leader >= 0;
        get_int(reader, 4);
        skip_int32s(reader);
        skip_int32s(reader);
        skip_int32s(reader);
    }
    return is_ready;
}

/* A broker may name itself in Metadata a moment before it leads, so each leader is asked for the end of its partition. */
static void find_end(int index) {
    int leader = 0;
    while (leader < broker_count && brokers[leader].id != partitions[index].leader) leader++;
    if (leader == broker_count) die("Metadata does not name the broker that leads partition %d", index);
    int opened = open_socket(brokers[leader].host, brokers[leader].port);
    i64 error = -1;
    for (int attempt = 0; attempt < ATTEMPTS_MAX && error; attempt++) {
        if (attempt) usleep(ATTEMPT_PAUSE_US);
        Buffer frame = {0};
        put_header(&frame, 2, 5, false);
        put_int(&frame, -1, 4);
        put_int(&frame, 0, 1);
        put_int(&frame, 1, 4);
        put_string(&frame, options.topic);
        put_int(&frame, 1, 4);
        put_int(&frame, index, 4);
        put_int(&frame, -1, 4);
        put_int(&frame, -1, 8); /* the latest */
        Buffer answer = ask(opened, &frame);
        Reader reader = {answer.data, 16, answer.size};
        skip_string(&reader);
        get_int(&reader, 4);
        get_int(&reader, 4);
        error = get_int(&reader, 2);
        get_int(&reader, 8);
        if (options.mode == END_TO_END || options.mode == TAIL) partitions[index].start_offset = get_int(&reader, 8);
        free(frame.data);
        free(answer.data);
    }
    close(opened);
    if (error) die("the leader of partition %d answers error %d", index, (int)error);
}

static void find_leaders(void) {
    int opened = open_socket(options.host, options.port);
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++, usleep(ATTEMPT_PAUSE_US)) {
        Buffer frame = {0};
        put_header(&frame, 3, 7, false);
        put_int(&frame, 1, 4);
        put_string(&frame, options.topic);
        put_int(&frame, 1, 1); /* create it if the broker does so */
        Buffer answer = ask(opened, &frame);
        Reader reader = {answer.data, 8, answer.size};
        get_int(&reader, 4);
        read_brokers(&reader);
        skip_string(&reader);
        get_int(&reader, 4);
        bool is_ready = read_topic(&reader);
        free(frame.data);
        free(answer.data);
        if (is_ready) {
            close(opened);
            for (int index = 0; index < partition_count; index++) find_end(index);
            return;
        }
    }
    die("topic %s has no leaders", options.topic);
}

/* ---- connections -------------------------------------------------------------------------------------------------- */

static void prepare_connection(Connection *connection, int number, int total, bool is_consumer, const Buffer *batch) {
    connection->is_consumer = is_consumer;
    connection->partitions = allocate(sizeof(int) * (size_t)partition_count);
    /* Connections go to the brokers in turn. Producers on one broker share its partitions; consumers divide them, but
     * those at the tail read all of them, each for itself. */
    connection->broker = number % broker_count;
    int rank = number / broker_count, peers = (total - connection->broker + broker_count - 1) / broker_count, led = 0;
    for (int index = 0; index < partition_count; index++) {
        if (partitions[index].leader != brokers[connection->broker].id) continue;
        if (!is_consumer || options.mode == TAIL || led % peers == rank)
            connection->partitions[connection->partition_total++] = index;
        led++;
    }
    connection->is_done = connection->partition_total == 0;
    if (connection->is_done) return;
    connection->pending = allocate(sizeof(Pending) * (size_t)options.depth);
    connection->in_capacity = 65536;
    connection->in = allocate(connection->in_capacity);
    if (is_consumer) {
        build_fetch(connection);
        connection->next_offsets = allocate(sizeof(i64) * (size_t)partition_count);
        for (int index = 0; index < partition_count; index++)
            connection->next_offsets[index] = partitions[index].start_offset;
    } else {
        connection->next_partition = number % connection->partition_total;
        connection->templates = allocate(sizeof(Template) * (size_t)connection->partition_total);
        for (int index = 0; index < connection->partition_total; index++)
            connection->templates[index] = build_produce(batch, connection->partitions[index]);
    }
    connection->socket = open_socket(brokers[connection->broker].host, brokers[connection->broker].port);
    fcntl(connection->socket, F_SETFL, fcntl(connection->socket, F_GETFL) | O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(epoll_file, EPOLL_CTL_ADD, connection->socket, &event)) die("epoll: %s", strerror(errno));
}

static void want_write(Connection *connection, bool wants) {
    if (connection->wants_write == wants) return;
    connection->wants_write = wants;
    struct epoll_event event = {.events = EPOLLIN | (wants ? EPOLLOUT : 0u), .data.ptr = connection};
    epoll_ctl(epoll_file, EPOLL_CTL_MOD, connection->socket, &event);
}

/* Writes until the socket is full or nothing is left; true when nothing is left. */
static bool flush_out(Connection *connection) {
    while (connection->out_position < connection->out_size) {
        ssize_t size = send(connection->socket, connection->out + connection->out_position,
                            connection->out_size - connection->out_position, MSG_NOSIGNAL);
        if (size < 0 && errno == EAGAIN) {
            want_write(connection, true);
            return false;
        }
        if (size <= 0) die("the broker closed a connection while it was written to: %s", strerror(errno));
        connection->out_position += (size_t)size;
    }
    connection->out_position = connection->out_size = 0;
    want_write(connection, false);
    return true;
}

/* ---- sending ------------------------------------------------------------------------------------------------------ */

static bool has_producers(void) { return options.mode == PRODUCE || options.mode == END_TO_END; }

static bool is_over(u64 now) {
    if (options.requests) return run.sent >= (u64)options.requests;
    if (options.bytes_max && now >= run.measure_ns && run.sent_bytes >= (u64)options.bytes_max) return true;
    return now >= run.end_ns;
}

/* When the next request is due; 0 when it is not due yet. Without a rate everything is due at once. */
static u64 next_due(u64 now) {
    if (options.rate <= 0) return now;
    u64 due = run.start_ns + (u64)((double)run.sent * 1e9 / options.rate);
    return due <= now ? due : 0;
}

static u64 frame_records, frame_bytes; /* of what is produced: every batch is the same */

static void note_measured(u64 now, u64 latency_ns, u64 records, u64 bytes) {
    run.last_ns = now;
    run.measured++;
    run.records += records;
    run.bytes += bytes;
    record_ns(&run.latency, latency_ns);
}

/* The warm-up ends by its time or by its bytes; then the bytes are counted from nought again. */
static void note_bytes(u64 due) {
    static bool is_warm;
    run.sent_bytes += frame_bytes;
    if (is_warm || !options.bytes_max) return;
    if (due < run.measure_ns && run.sent_bytes < (u64)options.bytes_max / 2) return;
    is_warm = true;
    run.sent_bytes = 0;
    if (due < run.measure_ns) {
        run.end_ns -= run.measure_ns - due;
        run.measure_ns = due;
    }
}

static void note_sent(Connection *connection, u8 *frame, u64 due) {
    write_int(frame + 8, connection->next_correlation_id, 4);
    if (!connection->is_consumer || options.mode != END_TO_END) run.sent++;
    if (!connection->is_consumer) note_bytes(due);
    int last = (connection->pending_first + connection->pending_count++) % options.depth;
    connection->pending[last] = (Pending){due, connection->next_correlation_id++};
}

/* End to end, the moment at which the batch was due travels in the first record's value. */
static void stamp(Template *template, u64 due) {
    u8 *batch = template->frame.data + template->batch_position;
    size_t size = (size_t)read_int(batch + 8, 4) + 12;
    Reader reader = {batch, BATCH_HEADER_BYTES, size};
    get_uvarint(&reader);
    take(&reader, 1);
    for (int field = 0; field < 4; field++) get_uvarint(&reader);
    write_int(batch + reader.position, (i64)due, 8);
    seal(batch, size);
}

static void send_more(Connection *connection) {
    u64 now = now_ns();
    while (flush_out(connection)) {
        connection->gathered.size = 0;
        while (connection->pending_count < options.depth && !is_over(now)) {
            u64 due = next_due(now);
            if (!due) break;
            Template *template = &connection->templates[connection->next_partition];
            Buffer *frame = &template->frame;
            bool is_small = frame->size <= GATHER_FRAME_BYTES_MAX;
            if (!is_small && connection->gathered.size) break;
            connection->next_partition = (connection->next_partition + 1) % connection->partition_total;
            if (options.mode == END_TO_END) {
                stamp(template, due);
                run.stamped += due >= run.measure_ns;
            }
            note_sent(connection, frame->data, due);
            if (!is_small) {
                connection->out = frame->data;
                connection->out_size = frame->size;
                break;
            }
            put(&connection->gathered, frame->data, frame->size);
            if (connection->gathered.size >= GATHER_BYTES_MAX) break;
        }
        if (connection->gathered.size) {
            connection->out = connection->gathered.data;
            connection->out_size = connection->gathered.size;
        }
        if (!connection->out_size) return;
        now = now_ns();
    }
}

static void send_fetch(Connection *connection) {
    Buffer *frame = &connection->templates[0].frame;
    for (int index = 0; index < connection->partition_total; index++)
        write_int(frame->data + connection->offset_positions[index],
                  connection->next_offsets[connection->partitions[index]], 8);
    note_sent(connection, frame->data, now_ns());
    connection->out = frame->data;
    connection->out_size = frame->size;
    flush_out(connection);
}

/* ---- receiving ---------------------------------------------------------------------------------------------------- */

static void note_error(i64 code) {
    if (!run.errors++) run.first_error_code = (u64)code;
}

static void handle_produced(Reader *reader) {
    skip_tags(reader);
    if (get_uvarint(reader) != 2) die("a Produce answer without the topic");
    take(reader, get_uvarint(reader) - 1);
    if (get_uvarint(reader) != 2) die("a Produce answer without the partition");
    get_int(reader, 4);
    i64 error = get_int(reader, 2);
    if (error) note_error(error);
}

static u64 fetched_records, fetched_bytes; /* by the answer at hand */

/* Walks over the batches of one partition; a last one that is cut is left for the next fetch. */
static void handle_records(const u8 *data, size_t size, i64 *next_offset, u64 now) {
    while (size >= BATCH_HEADER_BYTES) {
        size_t batch_bytes = (size_t)read_int(data + 8, 4) + 12;
        if (batch_bytes > size) return;
        i64 base_offset = read_int(data, 8), last_offset = base_offset + read_int(data + 23, 4);
        if (last_offset >= *next_offset) {
            if (base_offset > *next_offset) run.gaps++;
            if (options.check && (u32)read_int(data + 17, 4) != crc32c(data + CRC_START, batch_bytes - CRC_START))
                run.bad_crc++;
            *next_offset = last_offset + 1;
            if (options.mode != END_TO_END) {
                fetched_records += (u64)read_int(data + 57, 4);
                fetched_bytes += batch_bytes;
            } else {
                Reader reader = {data, BATCH_HEADER_BYTES, batch_bytes};
                get_uvarint(&reader);
                take(&reader, 1);
                for (int field = 0; field < 4; field++) get_uvarint(&reader);
                u64 due = (u64)read_int(data + reader.position, 8);
                if (due >= run.measure_ns && now > due) note_measured(now, now - due, frame_records, batch_bytes);
            }
        }
        data += batch_bytes;
        size -= batch_bytes;
    }
}

static void handle_fetched(Connection *connection, Reader *reader, u64 now) {
    fetched_records = fetched_bytes = 0;
    skip_tags(reader);
    get_int(reader, 4);
    i64 error = get_int(reader, 2);
    if (error) note_error(error);
    get_int(reader, 4);
    bool is_at_end = true;
    for (u64 topics = get_uvarint(reader); topics > 1; topics--) {
        take(reader, get_uvarint(reader) - 1);
        for (u64 count = get_uvarint(reader); count > 1; count--) {
            i64 index = get_int(reader, 4);
            if (index < 0 || index >= partition_count) die("a Fetch answer for a partition nobody asked for");
            Partition *partition = &partitions[index];
            if ((error = get_int(reader, 2))) note_error(error);
            partition->high_watermark = get_int(reader, 8);
            take(reader, 16);
            for (u64 aborted = get_uvarint(reader); aborted > 1; aborted--) {
                take(reader, 16);
                skip_tags(reader);
            }
            get_int(reader, 4);
            u64 size = get_uvarint(reader);
            if (size > 1) handle_records(take(reader, size - 1), size - 1, &connection->next_offsets[index], now);
            skip_tags(reader);
        }
        skip_tags(reader);
    }
    for (int index = 0; index < connection->partition_total; index++) {
        int partition = connection->partitions[index];
        if (connection->next_offsets[partition] < partitions[partition].high_watermark) is_at_end = false;
    }
    if (options.mode != FETCH || !is_at_end) return;
    if (options.passes && ++connection->passes == options.passes) connection->is_done = true;
    for (int index = 0; index < connection->partition_total; index++)
        connection->next_offsets[connection->partitions[index]] = 0;
}

static void handle_frame(Connection *connection, const u8 *frame, size_t size) {
    u64 now = now_ns();
    Reader reader = {frame, 0, size};
    if (!connection->pending_count) die("an answer to a request that was never sent");
    Pending pending = connection->pending[connection->pending_first];
    connection->pending_first = (connection->pending_first + 1) % options.depth;
    connection->pending_count--;
    if (get_int(&reader, 4) != pending.correlation_id) die("answers do not come in the order of the requests");
    run.answered++;
    bool is_measured = options.mode != END_TO_END && now >= run.measure_ns;
    if (connection->is_consumer) {
        handle_fetched(connection, &reader, now);
        if (is_measured) note_measured(now, now - pending.due_ns, fetched_records, fetched_bytes);
    } else {
        handle_produced(&reader);
        if (is_measured) note_measured(now, now - pending.due_ns, frame_records, frame_bytes);
    }
}

static void receive(Connection *connection) {
    ssize_t size = recv(connection->socket, connection->in + connection->in_size,
                        connection->in_capacity - connection->in_size, 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) die("the broker closed a connection: %s", size ? strerror(errno) : "end of stream");
    connection->in_size += (size_t)size;
    size_t position = 0;
    while (connection->in_size - position >= 4) {
        size_t frame = (size_t)read_int(connection->in + position, 4);
        if (frame > 1u << 30) die("a frame of %zu bytes", frame);
        if (frame + 4 > connection->in_size - position) {
            if (frame + 4 > connection->in_capacity) {
                connection->in_capacity = frame + 65536;
                connection->in = realloc(connection->in, connection->in_capacity);
                if (!connection->in) die("out of memory");
            }
            break;
        }
        handle_frame(connection, connection->in + position + 4, frame);
        position += frame + 4;
    }
    memmove(connection->in, connection->in + position, connection->in_size - position);
    connection->in_size -= position;
}

/* ---- the run ------------------------------------------------------------------------------------------------------ */

static void serve(Connection *connection, u32 events) {
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(connection);
    if (!connection->is_consumer) {
        send_more(connection);
    } else if (connection->out_size) {
        flush_out(connection);
    } else if (!connection->pending_count && !connection->is_done) {
        if (options.mode != END_TO_END && !options.passes && is_over(now_ns())) connection->is_done = true;
        else send_fetch(connection);
    }
}

static bool has_work(u64 now) {
    bool produces = has_producers();
    if (produces && !is_over(now)) return true;
    for (int index = 0; index < connection_count; index++) {
        Connection *connection = &connections[index];
        if (connection->is_consumer != !produces) continue;
        if (connection->pending_count || connection->out_size || (!produces && !connection->is_done)) return true;
    }
    return options.mode == END_TO_END && run.measured < run.stamped;
}

/* How long there is nothing to do but to wait for answers: until the next request is due, unless nobody has room for it. */
static struct timespec wait_time(u64 now, bool is_blocked) {
    u64 left = 100000000;
    if (options.rate > 0 && !is_blocked && !is_over(now)) {
        u64 due = run.start_ns + (u64)((double)run.sent * 1e9 / options.rate);
        u64 until_due = due > now ? due - now : 0;
        if (until_due < left) left = until_due;
    }
    return (struct timespec){.tv_nsec = (long)left};
}

/* With a rate, whoever has room takes what is due, a different connection first each time. True when some is left over. */
static bool send_due(void) {
    static int turn;
    if (options.rate <= 0 || !has_producers()) return false;
    turn++;
    for (int index = 0; index < connection_count; index++) {
        Connection *connection = &connections[(turn + index) % connection_count];
        if (is_over(now_ns()) || !next_due(now_ns())) return false;
        if (!connection->is_consumer && !connection->is_done) send_more(connection);
    }
    return next_due(now_ns()) != 0;
}

static void run_load(void) {
    struct epoll_event events[256];
    u64 give_up_ns = 0;
    bool is_blocked = false;
    for (int index = 0; index < connection_count; index++)
        if (!connections[index].is_done) serve(&connections[index], 0);
    for (u64 now = now_ns(); has_work(now); now = now_ns()) {
        struct timespec wait = wait_time(now, is_blocked);
        int count = epoll_pwait2(epoll_file, events, 256, &wait, NULL);
        if (count < 0 && errno != EINTR) die("epoll: %s", strerror(errno));
        for (int index = 0; index < count; index++) serve(events[index].data.ptr, events[index].events);
        is_blocked = send_due();
        if (!give_up_ns && is_over(now)) give_up_ns = now + GIVE_UP_NS;
        if (give_up_ns && now > give_up_ns) {
            fprintf(stderr, "loadgen: gave up waiting for the last answers\n");
            run.errors++;
            return;
        }
    }
}

/* A reader that stands still: its answers fill what there is between it and the broker, and stay there. */
static void stall(void) {
    for (int index = 0; index < connection_count; index++) {
        Connection *connection = &connections[index];
        while (!connection->is_done && connection->pending_count < options.depth && !connection->out_size)
            send_fetch(connection);
    }
    struct timespec rest = {.tv_sec = (time_t)options.seconds};
    rest.tv_nsec = (long)((options.seconds - (double)rest.tv_sec) * 1e9);
    nanosleep(&rest, NULL);
}

static void print_result(void) {
    double seconds = run.last_ns > run.measure_ns ? (double)(run.last_ns - run.measure_ns) / 1e9 : 0;
    double rate = seconds > 0 ? 1 / seconds : 0;
    double whole_seconds = (double)(now_ns() - run.start_ns) / 1e9;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("{\"mode\": \"%s\", \"seconds\": %.4f, \"requests\": %llu, \"records\": %llu, \"bytes\": %llu, ",
           mode_names[options.mode], seconds,
           (unsigned long long)run.measured, (unsigned long long)run.records, (unsigned long long)run.bytes);
    printf("\"requests_per_second\": %.1f, \"records_per_second\": %.1f, \"megabytes_per_second\": %.2f, ",
           (double)run.measured * rate, (double)run.records * rate, (double)run.bytes * rate / 1e6);
    double mean = run.latency.total ? (double)run.latency.sum / (double)run.latency.total / 1e3 : 0;
    printf("\"latency_us\": {\"mean\": %.1f, \"p50\": %.1f, \"p99\": %.1f, \"p99.9\": %.1f, \"max\": %.1f}, ", mean,
           quantile_us(&run.latency, 0.5), quantile_us(&run.latency, 0.99), quantile_us(&run.latency, 0.999),
           (double)run.latency.largest / 1e3);
    printf("\"answered\": %llu, \"errors\": %llu, \"first_error_code\": %llu, \"gaps\": %llu, \"bad_crc\": %llu, ",
           (unsigned long long)run.answered, (unsigned long long)run.errors,
           (unsigned long long)run.first_error_code, (unsigned long long)run.gaps, (unsigned long long)run.bad_crc);
    /* What the broker took, the warm-up included: one that is too slow for a rate may not reach what is measured. */
    printf("\"sent_per_second\": %.1f, ", whole_seconds > 0 ? (double)run.sent / whole_seconds : 0);
    printf("\"client_cpu_seconds\": %.3f}\n", cpu);
}

/* ---- the command line --------------------------------------------------------------------------------------------- */

static void parse_options(int count, char **words) {
    if (count < 2) die("usage: loadgen produce|fetch|tail|stall|e2e --port P --topic T ...; the top of its source says more");
    while (options.mode < MODES && strcmp(words[1], mode_names[options.mode])) options.mode++;
    if (options.mode == MODES) die("unknown mode %s", words[1]);
    for (int index = 2; index < count; index++) {
        const char *name = words[index];
        if (!strcmp(name, "--check")) {
            options.check = true;
            continue;
        }
        if (++index == count) die("%s needs a value", name);
        const char *value = words[index];
        if (!strcmp(name, "--host")) options.host = value;
        else if (!strcmp(name, "--topic")) options.topic = value;
        else if (!strcmp(name, "--batch-file")) options.batch_file = value;
        else if (!strcmp(name, "--port")) options.port = atoi(value);
        else if (!strcmp(name, "--connections")) options.connections = atoi(value);
        else if (!strcmp(name, "--depth")) options.depth = atoi(value);
        else if (!strcmp(name, "--acks")) options.acks = atoi(value);
        else if (!strcmp(name, "--passes")) options.passes = atoi(value);
        else if (!strcmp(name, "--wait-ms")) options.wait_ms = atoi(value);
        else if (!strcmp(name, "--batch-bytes")) options.batch_bytes = atoll(value);
        else if (!strcmp(name, "--record-bytes")) options.record_bytes = atoll(value);
        else if (!strcmp(name, "--partition-bytes")) options.partition_bytes = atoll(value);
        else if (!strcmp(name, "--bytes-max")) options.bytes_max = atoll(value);
        else if (!strcmp(name, "--requests")) options.requests = atoll(value);
        else if (!strcmp(name, "--seconds")) options.seconds = atof(value);
        else if (!strcmp(name, "--warmup-seconds")) options.warmup_seconds = atof(value);
        else if (!strcmp(name, "--rate")) options.rate = atof(value);
        else die("unknown option %s", name);
    }
    if (!options.topic || !options.port) die("--port and --topic are needed");
    if (options.depth < 1 || options.depth > DEPTH_MAX) die("--depth is 1 to %d", DEPTH_MAX);
    if (options.connections < 1 || options.connections > CONNECTIONS_MAX) die("--connections is 1 to %d", CONNECTIONS_MAX);
    if (options.record_bytes < 8) die("--record-bytes is 8 or more");
    /* Nothing is answered with acks=0, so nothing could be said about the broker. */
    if (options.acks != 1 && options.acks != -1) die("--acks is 1 or -1");
    if (options.mode == END_TO_END && options.rate <= 0) die("e2e needs a --rate");
    if (options.mode == FETCH || options.mode == TAIL) options.depth = 1;
}

int main(int count, char **words) {
    crc_prepare();
    if (crc32c((const u8 *)"123456789", 9) != 0xe3069283u) die("CRC-32C is computed wrongly");
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    parse_options(count, words);
    find_leaders();
    epoll_file = epoll_create1(0);
    Buffer batch = {0};
    if (has_producers()) {
        batch = options.batch_file ? read_batch_file(options.batch_file) : build_batch();
        frame_records = (u64)read_int(batch.data + 57, 4);
        frame_bytes = batch.size;
    }
    int consumers = !has_producers() ? options.connections : options.mode == END_TO_END ? broker_count : 0;
    int producers = has_producers() ? options.connections : 0;
    connection_count = producers + consumers;
    connections = allocate(sizeof(Connection) * (size_t)connection_count);
    for (int index = 0; index < producers; index++)
        prepare_connection(&connections[index], index, producers, false, &batch);
    for (int index = 0; index < consumers; index++)
        prepare_connection(&connections[producers + index], index, consumers, true, &batch);
    run.start_ns = run.last_ns = now_ns();
    run.measure_ns = run.start_ns + (u64)(options.warmup_seconds * 1e9);
    run.end_ns = run.measure_ns + (u64)(options.seconds * 1e9);
    if (options.mode == STALL) stall();
    else run_load();
    print_result();
    return run.errors || run.gaps || run.bad_crc ? 2 : 0;
}
